//go:build integration

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	natsjs "github.com/nats-io/nats.go/jetstream"

	"aob.dev/writ/bus"
	"aob.dev/writ/cell"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/node"
	"aob.dev/writ/internal/testing/natstest"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/jetstream"
)

// TestIntegrationCellFaults: a cell of two processes of each role on three NATS servers sends
// parcels, while its processes are paused and killed and its servers are paused, killed and cut
// off. No parcel is sent twice, and each one reported to a user was sent.
func TestIntegrationCellFaults(t *testing.T) {
	f := startFaulty(t)
	lasts, err := time.ParseDuration(os.Getenv(campaignTime))
	ends := time.Now().Add(lasts)
	rounds := []struct {
		name string
		do   func()
	}{{"held", f.holdRoles}, {"killed", f.killRole}, {"server", f.troubleServer}}
	for n := 0; n < len(rounds) || err == nil && time.Now().Before(ends); n++ {
		began := time.Now()
		rounds[n%len(rounds)].do()
		f.supervise()
		f.more(1)
		t.Logf("%s: %s, %.1f s, %d parcels", time.Now().Format(time.TimeOnly), rounds[n%len(rounds)].name, time.Since(began).Seconds(), f.acked.Load())
	}
	f.check()
}

// faulty is a cell that users use and that a test does harm to.
type faulty struct {
	*programCell
	servers *natstest.Cluster
	random  *rand.Rand
	depot   *depot
	key     string
	roles   []faultyRole
	ways    []natstest.Way // of routers
	urls    []string       // of gateways

	ctx          context.Context // of the users
	stop         context.CancelFunc
	users        sync.WaitGroup
	number       atomic.Int64 // of parcels
	acked        atomic.Int64
	acknowledged chan struct{} // a parcel was acknowledged
	notified     sync.Map      // parcels reported to users

	holds, kills, troubles map[string]int
}

// faultyRole is one role, or those that share a process, in two processes.
type faultyRole struct {
	name      string
	roles     []string
	processes [2]*machine
}

func executorRoles() (out []string) {
	for _, role := range node.Roles() {
		if strings.HasPrefix(role, "executor:") {
			out = append(out, role)
		}
	}
	return out
}

func startFaulty(t *testing.T) *faulty {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	f := &faulty{
		random: rand.New(rand.NewPCG(seed, 0)), depot: serveDepot(t, nil), acknowledged: make(chan struct{}, 1),
		holds: map[string]int{}, kills: map[string]int{}, troubles: map[string]int{},
	}
	var processes []string
	for _, role := range append(node.Roles(), "frames") {
		if role != "monitor" {
			processes = append(processes, nameOf(role)+":a", nameOf(role)+":b")
		}
	}
	f.programCell = makeCell(t, func(accounts []byte) []string {
		f.servers = natstest.StartWith(t, 3, string(accounts))
		return f.servers.URLs()
	}, processes...)
	f.key = f.writ("admin", "cell", "begin", f.dir, "--config", f.config, "--instance", "a")
	t.Setenv("WRIT_MODEL_KEY", "sk-test")
	m := &mind{}
	model := []string{"--model", "openai:mock", "--model-url", serveModel(t, general{m, sends(m)})}
	recorders := f.startTwo("recorder", nil)
	f.ways = []natstest.Way{f.servers.Way(), f.servers.Way()}
	routers := f.startTwo("router", flags("--recorders", recorders))
	for _, role := range []string{"manager", "planner", "task", "workflow"} {
		f.startTwo(role, model)
	}
	f.startTwo("monitor", nil)
	f.startTwoOf("executors", executorRoles(), append([]string{"--skills", f.depot.skills}, model...))
	f.urls = f.startTwo("gateway", append(flags("--recorders", recorders), flags("--routers", routers)...))
	f.approve(f.roles[len(f.roles)-2].processes[0], f.urls[0])
	f.writ("tenant", "data", "approval", `{"once":false}`, "--tenant", "default", "--url", f.urls[0], "--signer", filepath.Join(f.dir, "operator", "keys", "operator.pem"))
	f.ctx, f.stop = context.WithCancel(t.Context())
	for range 4 {
		f.users.Go(f.user)
	}
	f.more(4)
	return f
}

// flags of one name.
func flags(name string, values []string) (out []string) {
	for _, v := range values {
		out = append(out, name, v)
	}
	return out
}

// startTwo starts two processes of a role, and returns their addresses.
func (f *faulty) startTwo(role string, more []string) []string {
	return f.startTwoOf(role, []string{role}, more)
}

func (f *faulty) startTwoOf(name string, roles, more []string) (urls []string) {
	f.Helper()
	r := faultyRole{name: name, roles: roles}
	for i, instance := range twice {
		at := freeAddress(f.T) // the same one after a restart
		own := append([]string{"--listen", at}, more...)
		if name == "router" {
			own = append(own, flags("--bus", f.ways[i].URLs())...)
		}
		r.processes[i] = f.serve(instance, roles, own...)
		urls = append(urls, r.processes[i].url)
	}
	f.roles = append(f.roles, r)
	return urls
}

// user asks for one parcel after the other, and asks again as clients do.
func (f *faulty) user() {
	for f.ctx.Err() == nil {
		n := int(f.number.Add(1))
		for retry := 0; retry < 3 && f.ctx.Err() == nil; retry++ {
			if f.ask(n, retry) {
				f.notified.Store(n, true)
				f.acked.Add(1)
				select {
				case f.acknowledged <- struct{}{}:
				default:
				}
				break
			}
		}
	}
}

// askTime is how long a user waits.
const askTime = 45 * time.Second

func (f *faulty) ask(n, retry int) (sent bool) {
	ctx, cancel := context.WithTimeout(f.ctx, askTime)
	defer cancel()
	body, _ := json.Marshal(map[string]any{"model": "general", "messages": []map[string]string{{"role": "user", "content": fmt.Sprintf("Send parcel %d", n)}}})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, f.urls[(n+retry)%2]+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return false
	}
	req.Header.Set("Authorization", "Bearer "+f.key)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Stainless-Retry-Count", fmt.Sprint(retry))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		_ = clock.Sleep(ctx, 100*time.Millisecond)
		return false
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return err == nil && bytes.Contains(text, []byte("It is on its way"))
}

// more waits until so many more parcels were acknowledged.
func (f *faulty) more(n int64) {
	f.Helper()
	late := time.After(3 * time.Minute)
	for want := f.acked.Load() + n; f.acked.Load() < want; {
		select {
		case <-f.acknowledged:
		case <-late:
			f.Fatalf("nothing goes on: %d parcels", f.acked.Load())
		}
	}
}

// holdRoles pauses one process of each role for a while.
func (f *faulty) holdRoles() {
	f.Helper()
	var held []*machine
	for i, r := range f.roles {
		f.holds[r.name]++
		x := r.processes[f.random.IntN(2)]
		_ = x.cmd.Process.Signal(syscall.SIGSTOP)
		held = append(held, x)
		if i%3 == 2 {
			f.pause(time.Second)
		}
	}
	f.pause(3 * time.Second)
	for _, x := range held {
		_ = x.cmd.Process.Signal(syscall.SIGCONT)
	}
}

// killRole kills one process of a role, and starts it again after a while.
func (f *faulty) killRole() {
	f.Helper()
	r := f.roles[f.random.IntN(len(f.roles))]
	f.kills[r.name]++
	x := r.processes[f.random.IntN(2)]
	_ = x.cmd.Process.Kill()
	<-x.ended
	f.pause(6 * time.Second)
}

// supervise starts again what has ended, as whoever runs the processes does. By themselves only
// recorders and routers end: one that may have lost its lease.
func (f *faulty) supervise() {
	f.Helper()
	for _, r := range f.roles {
		for _, x := range r.processes {
			select {
			case <-x.ended:
			default:
				continue
			}
			status, ok := x.cmd.ProcessState.Sys().(syscall.WaitStatus)
			if ok && !status.Signaled() && r.name != "recorder" && r.name != "router" {
				f.Errorf("%s ended by itself: %v\n%s", r.name, x.cmd.ProcessState, x.stderr.Bytes())
			}
			f.restart(r.name, x)
		}
	}
}

func (f *faulty) restart(name string, x *machine) {
	f.Helper()
	announced := x.run(os.Environ())
	select {
	case <-announced:
	case <-x.ended:
		f.Fatalf("%s ended: %v\n%s", name, x.cmd.ProcessState, x.stderr.Bytes())
	case <-time.After(patience):
		f.Fatalf("%s does not come back:\n%s", name, x.stderr.Bytes())
	}
}

// troubleServer does one thing to the server that leads the journal.
func (f *faulty) troubleServer() {
	f.Helper()
	js, done := f.journal()
	leader := f.servers.Leader(js, jetstream.Stream)
	done()
	what := (f.troubles["killed"] + f.troubles["held"] + f.troubles["cut off"]) % 3
	f.troubles[[]string{"killed", "held", "cut off"}[what]]++
	[]func(int){f.servers.Kill, f.servers.Hold, f.servers.Cut}[what](leader)
	f.pause(10 * time.Second)
	[]func(int){f.servers.Launch, f.servers.Continue, f.servers.Mend}[what](leader)
}

// pause up to a time.
func (f *faulty) pause(most time.Duration) {
	_ = clock.Sleep(f.Context(), time.Duration(f.random.Int64N(int64(most))))
}

// journal is the API of a recorder.
func (f *faulty) journal() (js natsjs.JetStream, done func()) {
	f.Helper()
	conn, err := cell.Bus{URLs: f.servers.URLs(), Seeds: f.seeds, Instance: "b"}.Connect(f.Context(), "recorder")
	if err != nil {
		f.Fatal(err)
	}
	js, err = bus.JetStream(conn)
	if err != nil {
		f.Fatal(err)
	}
	return js, conn.Close
}

// check checks the sent parcels, the reports, and that the record is legal.
func (f *faulty) check() {
	f.Helper()
	f.stop()
	f.users.Wait()
	told, tried := 0, int(f.number.Load())
	for n := 1; n <= tried; n++ {
		_, acked := f.notified.Load(n)
		if acked {
			told++
		}
		switch times := f.depot.times("parcel_send", n); {
		case times > 1:
			f.Errorf("parcel %d was sent %d times", n, times)
		case times == 0 && acked:
			f.Errorf("a user was told of parcel %d, which was not sent", n)
		}
	}
	ctx, cancel := context.WithTimeout(f.Context(), patience)
	defer cancel()
	js, done := f.journal()
	defer done()
	rebuilt := state.New()
	j, err := jetstream.Open(ctx, js, jetstream.Options{Observer: func(e storage.Entry) { rebuilt.Observe(e) }})
	if err != nil {
		f.Fatal(err)
	}
	defer j.Close()
	// What is open then waits for an operator, who has to say how a call ended, or for a gateway
	// that has died.
	_ = clock.Every(ctx, time.Second, func() bool { _, open := rebuilt.OpenPlans(""); return open == 0 })
	_, open := rebuilt.OpenPlans("")
	if err := rebuilt.Err(); err != nil {
		f.Errorf("the record: %v", err)
	}
	f.Logf("%d parcels asked for, %d acknowledged, %d records, %d open plans; held %v, killed %v, servers %v", tried, told, j.Next(), open, f.holds, f.kills, f.troubles)
}
