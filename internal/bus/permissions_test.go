package bus_test

import (
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/nats-io/nats.go"

	"aob.dev/writ/internal/bus"
	"aob.dev/writ/internal/bus/natsserver"
)

// allowed is DESIGN §9 written out: who may publish and hear what, of all
// subjects below. Everything else is forbidden, and tried.
var allowed = map[string]struct{ publish, subscribe []string }{
	"gateway": {
		publish: []string{
			"writ.orders", "writ.batches", "writ.directory.apikey", "writ.directory.user", "writ.plans.silent",
			"writ.agent.manager", "writ.turn.acme.t1", "writ.grant.acme.t1",
		},
		subscribe: []string{"_INBOX_gateway.x"},
	},
	"manager": {
		publish:   []string{"writ.orders", "writ.batches", "writ.turn.acme.t1", "writ.agent.planner", "writ.agent.task", "writ.agent.task.p1"},
		subscribe: []string{"writ.agent.manager", "writ.agent.manager.p1", "writ.grant.acme.t1", "writ.grant.>", "$SRV.PING", "$SRV.INFO.writ-manager", "_INBOX_manager.x"},
	},
	"planner": {
		publish:   []string{"writ.orders", "writ.batches"},
		subscribe: []string{"writ.agent.planner", "writ.agent.planner.p1", "writ.grant.acme.t1", "writ.grant.>", "$SRV.PING", "$SRV.INFO.writ-planner", "_INBOX_planner.x"},
	},
	"task": {
		publish:   []string{"writ.orders", "writ.batches"},
		subscribe: []string{"writ.agent.task", "writ.agent.task.p1", "writ.grant.acme.t1", "writ.grant.>", "$SRV.PING", "$SRV.INFO.writ-task", "_INBOX_task.x"},
	},
	"python": {
		subscribe: []string{"writ.exec.exec_python", "$SRV.PING", "$SRV.INFO.writ-python", "_INBOX_python.x"},
	},
	"memory": {
		subscribe: []string{"writ.exec.write_memory", "writ.exec.memory.query", "$SRV.PING", "$SRV.INFO.writ-memory", "_INBOX_memory.x"},
	},
	outsiderName: {
		subscribe: []string{"writ.exec.x.acme.echo", "$SRV.PING", "$SRV.INFO.writ-x-acme", "_INBOX_x-acme.x"},
	},
	"router": {
		publish: []string{
			"writ.exec.exec_python", "writ.exec.write_memory", "writ.exec.memory.query", "writ.exec.admin", "writ.exec.x.acme.echo", "writ.exec.x.other.echo",
			"$SRV.INFO.writ-x-acme", "$SRV.PING", "$SRV.INFO.writ-manager", "$SRV.INFO.writ-planner", "$SRV.INFO.writ-task", "$SRV.INFO.writ-python", "$SRV.INFO.writ-memory", "$SRV.INFO.writ-router", "$SRV.>",
			"$JS.API.INFO", "$JS.API.STREAM.CREATE.JOURNAL", "$JS.API.STREAM.PURGE.FRAMES", "$JS.API.STREAM.MSG.GET.FRAMES", "$JS.API.DIRECT.GET.FRAMES",
			"$JS.API.CONSUMER.CREATE.FRAMES.c.writ.turn.acme.t1", "$JS.API.CONSUMER.CREATE.FRAMES.c", "$JS.API.CONSUMER.CREATE.FRAMES",
			"$JS.API.CONSUMER.MSG.NEXT.FRAMES.c", "$JS.API.CONSUMER.DELETE.FRAMES.c",
			"$JS.API.CONSUMER.CREATE.JOURNAL.c.writ.turn.acme.t1", "$JS.API.CONSUMER.MSG.NEXT.JOURNAL.c", "$JS.ACK.FRAMES.c.1.1.1.1.1",
		},
		subscribe: []string{
			"writ.orders", "writ.batches", "writ.directory.apikey", "writ.directory.user", "writ.plans.silent",
			"$SRV.INFO.writ-x-acme", "$SRV.PING", "$SRV.INFO.writ-manager", "$SRV.INFO.writ-planner", "$SRV.INFO.writ-task", "$SRV.INFO.writ-python", "$SRV.INFO.writ-memory", "$SRV.INFO.writ-router", "$SRV.>",
			"_INBOX_router.x",
		},
	},
	"frames": {
		publish: []string{
			"$JS.API.CONSUMER.CREATE.FRAMES.c.writ.turn.acme.t1",
			"$JS.API.CONSUMER.MSG.NEXT.FRAMES.c", "$JS.API.CONSUMER.DELETE.FRAMES.c",
		},
		subscribe: []string{"_INBOX_frames.x"},
	},
}

// subjects are all that the grammar knows, one of each kind, and what an
// intruder would try besides.
var subjects = []string{
	"writ.orders", "writ.batches", "writ.directory.apikey", "writ.directory.user", "writ.plans.silent",
	"writ.exec.exec_python", "writ.exec.write_memory", "writ.exec.memory.query", "writ.exec.admin", "writ.exec.x.acme.echo", "writ.exec.x.other.echo", "writ.exec.>",
	"writ.agent.manager", "writ.agent.planner", "writ.agent.task", "writ.agent.*",
	"writ.agent.manager.p1", "writ.agent.planner.p1", "writ.agent.task.p1",
	"writ.turn.acme.t1", "writ.turn.>", "writ.grant.acme.t1", "writ.grant.>",
	"$SRV.INFO.writ-x-acme", "$SRV.PING", "$SRV.INFO.writ-manager", "$SRV.INFO.writ-planner", "$SRV.INFO.writ-task", "$SRV.INFO.writ-python", "$SRV.INFO.writ-memory", "$SRV.INFO.writ-router", "$SRV.>",
	"$JS.API.INFO", "$JS.API.STREAM.CREATE.JOURNAL", "$JS.API.STREAM.PURGE.FRAMES", "$JS.API.STREAM.MSG.GET.FRAMES", "$JS.API.DIRECT.GET.FRAMES",
	"$JS.API.CONSUMER.CREATE.FRAMES.c.writ.turn.acme.t1", "$JS.API.CONSUMER.CREATE.FRAMES.c", "$JS.API.CONSUMER.CREATE.FRAMES",
	"$JS.API.CONSUMER.MSG.NEXT.FRAMES.c", "$JS.API.CONSUMER.DELETE.FRAMES.c",
	"$JS.API.CONSUMER.CREATE.JOURNAL.c.writ.turn.acme.t1", "$JS.API.CONSUMER.MSG.NEXT.JOURNAL.c", "$JS.ACK.FRAMES.c.1.1.1.1.1",
	"_INBOX_gateway.x", "_INBOX_manager.x", "_INBOX_planner.x", "_INBOX_task.x", "_INBOX_python.x", "_INBOX_memory.x", "_INBOX_router.x", "_INBOX_frames.x", "_INBOX_x-acme.x",
	"_R_.x", "_INBOX.>", "$SYS.REQ.SERVER.PING", "$SYS.>", "writ.>", "elsewhere", ">",
}

// wildcards cannot be published to in a way that means more than themselves.
var wildcards = []string{"writ.exec.>", "writ.agent.*", "writ.turn.>", "writ.grant.>", "_INBOX.>", "$SYS.>", "writ.>", ">", "$SRV.>"}

// TestEveryPair tries every subject as every user: in process, and with their
// credentials over a listener, where outsiders come from too.
func TestEveryPair(t *testing.T) {
	s := startOn(t, "127.0.0.1:0")
	seed := admit(t, s, "x.acme.echo")
	if got, want := len(s.Users())+1, len(allowed); got != want {
		t.Fatalf("server has %d users, the table %d", got, want)
	}
	for user, may := range allowed {
		for _, subject := range slices.Concat(may.publish, may.subscribe) {
			if !slices.Contains(subjects, subject) {
				t.Fatalf("%s: %s is not among the subjects tried", user, subject)
			}
		}
		if user == outsiderName {
			t.Run(user, func(t *testing.T) { everySubject(t, outside(t, s, seed), may.publish, may.subscribe) })
			continue
		}
		t.Run(user, func(t *testing.T) { everySubject(t, raw(t, s, user), may.publish, may.subscribe) })
		t.Run(user+" over the listener", func(t *testing.T) {
			cred := s.Users()[user]
			everySubject(t, dial(t, s, nats.UserInfo(cred.User, cred.Password)), may.publish, may.subscribe)
		})
	}
}

// everySubject publishes and subscribes, alone and in a queue group, to all of them.
func everySubject(t *testing.T, nc *nats.Conn, publish, subscribe []string) {
	t.Helper()
	for _, subject := range subjects {
		if !slices.Contains(wildcards, subject) {
			err := refused(t, nc, func() error { return nc.Publish(subject, nil) })
			check(t, "publish", subject, err, slices.Contains(publish, subject))
		}
		for _, queue := range []string{"", "q"} {
			err := refused(t, nc, func() error { _, err := nc.QueueSubscribeSync(subject, queue); return err })
			if queue == "" {
				err = refused(t, nc, func() error { _, err := nc.SubscribeSync(subject); return err })
			}
			check(t, "subscribe "+queue, subject, err, slices.Contains(subscribe, subject))
		}
	}
}

func check(t *testing.T, verb, subject string, err error, want bool) {
	t.Helper()
	if want && err != nil {
		t.Errorf("%s %s: refused, should be allowed: %v", verb, subject, err)
	}
	if !want && !errors.Is(err, nats.ErrPermissionViolation) {
		t.Errorf("%s %s: allowed, should be refused (%v)", verb, subject, err)
	}
}

// refused does something and gives the server's objection, if any.
func refused(t *testing.T, nc *nats.Conn, do func() error) error {
	t.Helper()
	before := nc.LastError()
	if err := do(); err != nil {
		t.Fatal(err)
	}
	if err := nc.FlushTimeout(patience); err != nil {
		t.Fatal(err)
	}
	if after := nc.LastError(); after != before { //nolint:errorlint // identity: a new one
		return after
	}
	return nil
}

// raw is a connection without our own manners.
func raw(t *testing.T, s *natsserver.Server, user string) *nats.Conn {
	t.Helper()
	cred := s.Users()[user]
	nc, err := nats.Connect("", nats.InProcessServer(s), nats.UserInfo(cred.User, cred.Password),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})) // LastError tells
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

// With a listener there is a socket, and nobody gets in by it without a password.
func TestListenerNeedsPassword(t *testing.T) {
	s := startOn(t, "127.0.0.1:0")
	good := s.Users()["router"]
	for _, cred := range []natsserver.Credentials{{}, {User: "router"}, {User: "router", Password: s.Users()["gateway"].Password}, {User: "nobody", Password: good.Password}} {
		c, err := bus.Connect(t.Context(), bus.Options{URL: s.URL(), User: cred.User, Password: cred.Password})
		if !errors.Is(err, nats.ErrAuthorization) {
			t.Errorf("%+v: %v, want an authorization error", cred, err)
		}
		if c != nil {
			c.Close()
		}
	}
	c, err := bus.Connect(t.Context(), bus.Options{URL: s.URL(), User: good.User, Password: good.Password})
	if err != nil {
		t.Fatal(err)
	}
	c.Close()

	_, err = natsserver.Start(t.Context(), natsserver.Options{Dir: t.TempDir(), Listen: strings.TrimPrefix(s.URL(), "nats://")})
	if !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("port in use: %v", err)
	}
	if url := start(t).URL(); url != "" {
		t.Errorf("listens on %s without having been asked", url)
	}
}

// An executor answers what it was asked, once, and says nothing else.
func TestExecutorAnswersOnce(t *testing.T) {
	s := start(t)
	exec, router := raw(t, s, "python"), connect(t, s, natsserver.Router)
	second := make(chan error, 1)
	_, err := exec.Subscribe("writ.exec.exec_python", func(m *nats.Msg) {
		if err := m.Respond([]byte("one")); err != nil {
			t.Error(err)
		}
		second <- refused(t, exec, func() error { return m.Respond([]byte("two")) })
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := exec.FlushTimeout(patience); err != nil {
		t.Fatal(err)
	}
	if got, err := request(t, router, "writ.exec.exec_python", "x"); got != "one" || err != nil {
		t.Fatalf("got %q, %v", got, err)
	}
	if err := <-second; !errors.Is(err, nats.ErrPermissionViolation) {
		t.Errorf("second answer: %v, want a permission violation", err)
	}
}
