package bus_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/micro"

	"aob.dev/writ/bus"
	"aob.dev/writ/bus/natsserver"
)

// Requests and replies pass on every path.
func TestRequestReply(t *testing.T) {
	s := start(t)
	for _, way := range []struct{ from, to, subject string }{
		{"gateway", "router", bus.Intents},
		{"planner", "router", bus.Batches},
		{"manager", "router", bus.Intents},
		{"planner", "router", bus.Intents},
		{"task", "router", bus.Intents},
		{"gateway", "router", bus.DirectoryAPIKey},
		{"gateway", "router", bus.DirectoryUser},
		{"gateway", "router", bus.PlansSilent},
		{"gateway", "manager", bus.Agent("manager")},
		{"manager", "planner", bus.Agent("planner")},
		{"manager", "task", bus.Agent("task")},
		{"gateway", "workflow", bus.Agent("workflow")},
		{"workflow", "task", bus.Agent("task")},
		{"workflow", "router", bus.Intents},
		{"gateway", "router", bus.DirectoryRegistry},
		{"router", "skills", bus.SkillVersions},
		{"router", "skills", bus.SkillAnswers},
		{"router", "python", bus.Exec("exec_python")},
		{"router", "memory", bus.Exec("memory.query")},
	} {
		t.Run(way.from+" "+way.subject, func(t *testing.T) {
			from, to := connect(t, s, way.from), connect(t, s, way.to)
			if _, err := request(t, from, way.subject, "early"); !errors.Is(err, bus.ErrNoResponders) {
				t.Errorf("nobody listens: %v, want ErrNoResponders", err)
			}
			stop := serve(t, to, echo(way.to, way.subject))
			got, err := request(t, from, way.subject, "hello")
			if want := way.to + " " + way.subject + " hello"; got != want || err != nil {
				t.Errorf("got %q, %v, want %q", got, err, want)
			}
			stop()
			if _, err := request(t, from, way.subject, "late"); !errors.Is(err, bus.ErrNoResponders) {
				t.Errorf("nobody listens any more: %v, want ErrNoResponders", err)
			}
		})
	}
}

func TestRequestEndsWithContext(t *testing.T) {
	s := start(t)
	asked := make(chan struct{})
	release := make(chan struct{})
	stop := serve(t, connect(t, s, "python"), bus.Service{Name: "writ-python", Version: "1.0.0", Queue: "python", Endpoints: map[string]bus.Handler{
		bus.Exec("exec_python"): func(context.Context, []byte) []byte { close(asked); <-release; return nil },
	}})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-asked; cancel() }()
	if _, err := connect(t, s, "router").Request(ctx, bus.Exec("exec_python"), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	close(release)
	stop()
}

// Serve refuses subjects that the service may not listen on, and reports them.
func TestServeForbidden(t *testing.T) {
	s := start(t)
	for name, svc := range map[string]bus.Service{
		"another's subject": echo("python", bus.Exec("read_memory")),
		"another's name":    echo("memory", bus.Exec("exec_python")),
	} {
		if err := connect(t, s, "python").Serve(t.Context(), svc, nil); err == nil {
			t.Errorf("%s: served", name)
		}
	}
	manager, other := connect(t, s, "manager"), connect(t, s, "manager")
	if err := manager.Serve(t.Context(), echo("manager", bus.Grant("manager", other.Instance())), nil); err == nil {
		t.Error("a manager serves the grants of another")
	}
	outOfGroup := echo("manager", bus.Agent("manager"))
	outOfGroup.Queue = "beside"
	if err := manager.Serve(t.Context(), outOfGroup, nil); err == nil {
		t.Error("a manager serves beside its queue group")
	}
}

// At most Workers requests run at once and all are answered; requests that have begun finish
// although the service is stopped.
func TestServeBounded(t *testing.T) {
	s := start(t)
	const workers, requests = 3, 12
	var running, most atomic.Int32
	begun, release := make(chan struct{}, requests), make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	ready, ended := make(chan struct{}), make(chan error, 1)
	svc := bus.Service{Name: "writ-python", Version: "1.0.0", Queue: "python", Workers: workers, Endpoints: map[string]bus.Handler{
		bus.Exec("exec_python"): func(ctx context.Context, data []byte) []byte {
			for n := running.Add(1); ; {
				if m := most.Load(); n <= m || most.CompareAndSwap(m, n) {
					break
				}
			}
			begun <- struct{}{}
			<-release
			running.Add(-1)
			if ctx.Err() != nil {
				return []byte("cut")
			}
			return data
		},
	}}
	exec, router := connect(t, s, "python"), connect(t, s, "router")
	go func() { ended <- exec.Serve(ctx, svc, ready) }()
	<-ready
	var wg sync.WaitGroup
	for range requests {
		wg.Go(func() {
			if got, err := request(t, router, bus.Exec("exec_python"), "x"); got != "x" || err != nil {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
	for range workers {
		<-begun
	}
	close(release)
	for range requests - workers {
		<-begun
	}
	cancel()
	wg.Wait()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if most.Load() != workers {
		t.Errorf("%d ran at once, want %d", most.Load(), workers)
	}
}

// The router's discovery finds the executors and itself, but not the agents.
func TestServices(t *testing.T) {
	s := start(t)
	router := connect(t, s, natsserver.Router)
	serve(t, router, echo("router", bus.Intents))
	serve(t, connect(t, s, "python"), echo("python", bus.Exec("exec_python")))
	serve(t, connect(t, s, "memory"), echo("memory", bus.Exec("read_memory"), bus.Exec("memory.query")))
	serve(t, connect(t, s, "manager"), echo("manager", bus.Agent("manager")))

	asker := admitted(t, s, natsserver.Router).Asks
	nc := raw(t, s, asker)
	answers, err := nc.SubscribeSync(bus.InboxPrefix(asker.User) + ".services")
	if err == nil {
		err = nc.PublishRequest("$SRV.INFO", answers.Subject, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for {
		m, err := answers.NextMsg(time.Second / 2)
		if err != nil {
			break // all have answered
		}
		var i micro.Info
		if err := json.Unmarshal(m.Data, &i); err != nil || i.ID == "" || i.Version != "1.0.0" {
			t.Errorf("%s: id %q, version %q, error %v", i.Name, i.ID, i.Version, err)
		}
		for _, e := range i.Endpoints {
			got[i.Name] = append(got[i.Name], e.Subject)
		}
		slices.Sort(got[i.Name])
	}
	want := map[string][]string{
		"writ-router": {"writ.intents"},
		"writ-python": {"writ.exec.exec_python"},
		"writ-memory": {"writ.exec.memory.query", "writ.exec.read_memory"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// A fresh grant reaches only the process that it is addressed to.
func TestGrantsReachOneProcess(t *testing.T) {
	s := start(t)
	for role, by := range map[string]string{"manager": "gateway", "planner": "manager", "task": "manager", "workflow": "gateway"} {
		one, other := connect(t, s, role), connect(t, s, role)
		serve(t, one, echo(role, bus.Agent(role), bus.Grant(role, one.Instance())))
		serve(t, other, echo(role, bus.Agent(role), bus.Grant(role, other.Instance())))
		from := connect(t, s, by)
		for range 20 {
			got, err := request(t, from, bus.Grant(role, one.Instance()), "grant")
			if want := role + " " + bus.Grant(role, one.Instance()) + " grant"; got != want || err != nil {
				t.Fatalf("got %q, %v, want %q", got, err, want)
			}
		}
	}
}

func TestConnectOptions(t *testing.T) {
	s := start(t)
	for name, o := range map[string]bus.Options{
		"neither":   {User: "router"},
		"both":      {User: "router", URL: "nats://127.0.0.1:1", InProcess: s},
		"no server": {User: "router", URL: "nats://127.0.0.1:1"},
	} {
		if c, err := bus.Connect(t.Context(), o); err == nil {
			c.Close()
			t.Errorf("%s: connected", name)
		}
	}
}
