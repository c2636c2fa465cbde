// Package graphs is a test: random graphs are run by the engine over the router and its journal
// on disk, whose processes die at each of their commits.
package graphs

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"aob.dev/writ/bus"
	"aob.dev/writ/bus/natsserver"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/router"
	"aob.dev/writ/router/breakers"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/sqlite"
)

// graphsVariable is how many graphs TestGraphs runs; unset, a few.
const graphsVariable = "WRIT_GRAPHS"

const (
	patience  = time.Minute // for what comes at once
	runID     = "r1"
	fewGraphs = 2
	jobsAside = 16 // most of the time they wait
	large     = 100
)

// deaths of the run of a graph.
type deaths struct {
	name   string
	pass   int
	router bool
}

// modes: undisturbed, the driver dies, everything dies. Two passes together die at each commit.
var modes = []deaths{{"undisturbed", -1, false}, {"driver", 0, false}, {"driver", 1, false}, {"router", 0, true}, {"router", 1, true}}

// run of a graph.
type run struct {
	*testing.T
	graph  *graph
	mode   deaths
	server *natsserver.Server
	chaos  *chaos // nil: none
	points *points
	plan   *routertest.Plan
	dir    string
	random *rand.Rand

	w       *routertest.World
	journal *sqlite.Journal
	bus     bus.Conn // of the router
	serves  chan error
	end     context.Context // of the work of the router
	leave   func()
	stop    context.CancelFunc

	agents  []process
	deaths  int
	read    int64                  // records of which is known what they say
	moved   chan struct{}          // something was recorded
	intents map[int64]state.Intent // by position
	unknown map[string]bool        // ids of nodes' intents of which only an operator knew how they ended

	mu    sync.Mutex                // guards calls
	calls map[string]map[string]int // how often each intent was carried out, by node and attempt
}

// TestGraphs: random graphs end as an oracle predicts, and have the effects of an undisturbed run,
// although the driver dies at each of the run's commits, and although all processes do. No intent
// that acts once is executed twice.
func TestGraphs(t *testing.T) {
	t.Parallel()
	graphs, few := fewGraphs, true
	if n, err := strconv.Atoi(os.Getenv(graphsVariable)); err == nil {
		graphs, few = n, false
	}
	var mu sync.Mutex // guards what is counted
	died, runs, asked, nodes := map[string]int{}, 0, 0, 0
	ends := map[catalog.PlanStatus]int{}
	var next atomic.Int64
	var workers sync.WaitGroup
	for range jobsAside {
		server, err := natsserver.Start(t.Context(), natsserver.Options{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(server.Close)
		workers.Go(func() {
			for !t.Failed() {
				job := int(next.Add(1) - 1)
				if job >= graphs*len(modes) {
					return
				}
				seed, m := uint64(job/len(modes)), modes[job%len(modes)]
				g := graphOf(seed)
				end := g.judge()
				x := &run{graph: g, mode: m, server: server}
				t.Run(fmt.Sprintf("%d %s %d", seed, m.name, m.pass), func(t *testing.T) { // what it leaves in memory goes with it
					x.T = t
					x.all(end)
				})
				mu.Lock()
				died[m.name] += x.deaths
				runs++
				asked += min(1, len(x.unknown))
				if m.pass < 0 {
					ends[end]++
					nodes += len(g.nodes)
				}
				if !few && runs%100 == 0 {
					t.Logf("%d runs; deaths so far %v", runs, died)
				}
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	t.Logf("%d graphs of %d nodes, %d runs, ends %v, deaths %v; in %d runs an operator had to say how a call ended", graphs, nodes, runs, ends, died, asked)
	if died["driver"] < 5*graphs || died["router"] < 5*graphs || ends[catalog.PlanComplete] == 0 || !few && ends[catalog.PlanFailed] == 0 {
		t.Errorf("ends %v, deaths %v: the test tries too little", ends, died)
	}
}

// all of a run, from its start to its end.
func (x *run) all(end catalog.PlanStatus) {
	x.begin()
	for !x.lived() {
		x.deaths++
	}
	x.judged(end)
	x.endRouter()
	x.w.Must(os.RemoveAll(x.dir))
}

// begin starts the run, which nobody drives yet.
func (x *run) begin() {
	x.random = rand.New(rand.NewPCG(x.graph.seed, uint64(x.mode.pass+1)))
	x.dir, x.intents, x.unknown, x.calls = x.TempDir(), map[int64]state.Intent{}, map[string]bool{}, map[string]map[string]int{}
	x.points = &points{pass: x.mode.pass, sample: 1, counts: map[string]int{}, intents: map[int64]string{}}
	if len(x.graph.nodes) > large {
		x.points.sample = 5
	}
	x.moved = make(chan struct{}, 1)
	x.w = routertest.New(x, routertest.Options{Open: x.open, Also: x.observe, Breakers: &breakers.Terms{Failures: 1 << 20, Reset: time.Second, Probes: 1, Probing: time.Second, Sync: time.Hour}})
	for skill, effect := range effects {
		x.w.Pin(skill, effect)
	}
	x.w.Data("approval", `{"once":false}`)
	x.w.PushAgents(1, map[string]string{"workflows/random": x.graph.text()})
	x.w.Clock.Move(time.Since(x.w.Clock.Now()))
	x.w.Bus.On("skill.call", x.call)
	x.plan = x.w.NewPlan(runID)
	x.w.Bus.On("plan.get", func(context.Context, routertest.Call) intents.Report {
		return routertest.Done(catalog.PlanGetResult{Plan: x.plan.View()}) //nolint:contextcheck,nolintlint // the test has one; the linter sees it now and then
	})
	x.w.Want(x.w.Do(x.plan.StartIntent("random", `{}`)), intents.OK)
	x.serve()
}

func (x *run) open(observe storage.Observer) routertest.Journal {
	j, err := sqlite.OpenJournal(x.Context(), x.dir, sqlite.JournalOptions{Observer: observe, FreeFloor: -1})
	if err != nil {
		x.Fatal(err)
	}
	x.journal = j
	return &gate{Journal: j, points: x.points, lethal: x.mode.router}
}

// call executes the intent of a node, according to its fate.
func (x *run) call(_ context.Context, c routertest.Call) intents.Report {
	var args struct {
		Input struct {
			N   int
			Got *int
		}
	}
	if err := json.Unmarshal(c.Body.Intent.Args, &args); err != nil {
		x.Error(err)
	}
	n := x.graph.nodes[args.Input.N]
	x.mu.Lock()
	id := fmt.Sprintf("n%d.%d", args.Input.N, c.Body.Context.Occurrence)
	if x.calls[id] == nil {
		x.calls[id] = map[string]int{}
	}
	x.calls[id][c.Ticket.IntentID]++
	x.mu.Unlock()
	if x.chaos.comes(silentServer, 15) {
		var left atomic.Int64
		left.Store(1 + int64(x.chaos.number(3)))
		x.w.Bus.Fail(func(context.Context) ([]byte, error) {
			if left.Add(-1) <= 0 {
				x.w.Bus.Fail(nil)
			}
			return nil, context.DeadlineExceeded
		})
	}
	if x.chaos.comes(lyingServers, 15) {
		return x.chaos.lie()
	}
	if x.chaos == nil && n.reads >= 0 && (args.Input.Got == nil || *args.Input.Got != x.graph.nodes[n.reads].n) {
		x.Errorf("%s was given %s", id, c.Body.Intent.Args)
	}
	if c.Body.Context.Occurrence < n.fails {
		return intents.Report{Status: intents.Failed, Code: intents.ExecutorFailed, Reason: "it is its fate"}
	}
	return routertest.Done(map[string]any{"output": map[string]any{"success": n.says, "n": n.n}})
}

// serve lets the router accept intents.
func (x *run) serve() {
	x.bus = x.connect(natsserver.Router)
	ctx, stop := context.WithCancel(x.lasting())
	ready := make(chan struct{})
	x.stop, x.serves = func() { stop(); x.leave() }, make(chan error, 1)
	r, conn := x.w.Router, x.bus
	take := func(_ context.Context, raw []byte) []byte { // as Router.Serve; here a waiter for another's intent dies, too
		a, err := r.SubmitAndWait(ctx, raw, patience)
		if err != nil {
			a = router.RefusalAnswer(raw, err)
		}
		out, err := json.Marshal(a)
		x.w.Must(err)
		return out
	}
	go func() {
		x.serves <- conn.Serve(ctx, bus.Service{Name: bus.ServiceName("router"), Version: "1.0.0", Each: map[string]bus.Handler{bus.Intents: take}}, ready)
	}()
	x.await(ready)
}

// lasting is what the work of a router runs under until it dies.
func (x *run) lasting() context.Context {
	if x.end == nil || x.end.Err() != nil {
		x.end, x.leave = context.WithCancel(context.Background())
	}
	return clock.WithEnd(x.Context(), x.end)
}

func (x *run) arrived(id string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, calls := range x.calls {
		if calls[id] > 0 {
			return true
		}
	}
	return false
}

// silent is how long a run stands still until it is handed out again, as a gateway does: the
// claim of a driver that died may have come after the epoch was read for the next one, which
// then leaves the run to the dead.
const silent = 2 * time.Second

// dispatch gives the run to the engine, as a gateway does, and waits for its end.
func (x *run) dispatch(ctx context.Context) {
	gateway := x.connect(natsserver.Gateway) //nolint:contextcheck,nolintlint // the test has one; the linter sees it now and then
	defer gateway.Close()
	for quiet := true; ; {
		v := x.plan.View() //nolint:contextcheck,nolintlint // as above
		if v.Status == catalog.PlanComplete || v.Status == catalog.PlanFailed {
			return
		}
		if quiet {
			if _, err := gateway.Request(ctx, bus.Agent("workflow"), x.dispatchOf(v.Epoch)); err != nil { //nolint:contextcheck,nolintlint // as above
				if ctx.Err() == nil {
					x.Errorf("hand-out: %v", err)
				}
				return
			}
		}
		select {
		case <-x.moved:
			quiet = false
		case <-time.After(silent):
			quiet = true
		case <-ctx.Done():
			return
		}
	}
}

func (x *run) dispatchOf(epoch int) []byte {
	at := intents.Context{PlanID: x.plan.ID, SessionID: routertest.SessionOf(x.plan.ID), TurnID: routertest.Turn}
	raw, err := json.Marshal(bus.PlanDispatch{
		TurnRef: bus.TurnRef{
			Tenant: "default", UserID: x.plan.User, SessionID: at.SessionID, TurnID: at.TurnID, PlanID: x.plan.ID,
			Grant: x.w.Grant(x.plan.User, "default", routertest.Intent{Ctx: at}),
		},
		Driver: fmt.Sprint("driver-", x.deaths), Epoch: epoch,
	})
	x.w.Must(err)
	return raw
}

// judged compares the end and the effects of the run with the oracle.
func (x *run) judged(end catalog.PlanStatus) {
	v := x.plan.View()
	told := len(x.unknown) == 0 // an operator knows that a call arrived, and not what it answered
	if told && v.Status != end {
		x.Errorf("graph %d ended %s, want %s: %+v", x.graph.seed, v.Status, end, v.Failure)
	}
	for i, n := range x.graph.nodes {
		got, attempts := string(v.Steps[i].Status), 0
		for of := range n.attempts() + 1 {
			byID := x.calls[fmt.Sprintf("n%d.%d", i, of)]
			attempts += min(1, len(byID))
			for id, times := range byID {
				// A pure call with an unknown outcome is repeated.
				if n.skill == "s.once" && times > 1 || n.skill != "s.pure" && len(byID) > 1 || x.mode.pass < 0 && times > 1 {
					x.Errorf("graph %d: attempt %d of n%d, %s, was carried out as %d intents, and %s %d times", x.graph.seed, of, i, n.skill, len(byID), id, times)
				}
			}
		}
		final := got == "done" || got == "failed" || got == "skipped"
		if told && final && got != n.status || told && end == catalog.PlanComplete && !final {
			x.Errorf("graph %d: n%d is %s, want %s", x.graph.seed, i, got, n.status)
		}
		want := 0
		if got == "done" || got == "failed" {
			want = n.attempts()
		}
		if told && final && attempts != want || got == "skipped" && attempts > 0 {
			x.Errorf("graph %d: n%d, %s, was attempted %d times, want %d", x.graph.seed, i, got, attempts, want)
		}
	}
}
