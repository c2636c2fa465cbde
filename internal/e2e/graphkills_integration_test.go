//go:build integration

package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/failpoint"
	"aob.dev/writ/state"
	"aob.dev/writ/state/agents"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/sqlite"
)

// deathsOfGraphs is how often a plan has to be killed, in all, and at how many of them
// at once a machine of its own runs.
const (
	deathsOfGraphs = 300
	graphsAtOnce   = 3
)

// errand is what one step of a graph does: it calls one skill for some parcels.
type errand struct {
	skill  string
	calls  int  // parcels
	atOnce bool // all in one reply
}

// graph is a random plan over the depot's skills.
type graph struct {
	steps   []catalog.PlanStep
	errands []errand
}

// graphOf is the graph of a seed.
func graphOf(seed uint64) (g graph) {
	r := rand.New(rand.NewPCG(seed, 7)) // graphs have to be the same again
	for n := range 2 + r.IntN(3) {
		e := errand{[]string{"parcel_send", "parcel_send", "parcel_label", "parcel_weigh"}[r.IntN(4)], 1 + r.IntN(2), r.IntN(2) == 0}
		s := step(n+1, fmt.Sprintf("errand %d", n+1), e.skill, 0, "{total: integer}")
		s.Parallel = n > 0 && r.IntN(2) == 0
		for before := range n {
			if r.IntN(4) == 0 {
				s.Inputs = append(s.Inputs, before+1)
			}
		}
		g.steps, g.errands = append(g.steps, s), append(g.errands, e)
	}
	return g
}

// parcel is the number of the i-th parcel of a step in a run.
func parcel(run, step, i int) int { return run*1000 + step*100 + i + 1 }

// courier is a model that carries out a graph: it calls what it does not find called.
// What it knows is in the request alone.
type courier struct {
	*mind
	graph graph
}

func (m courier) Respond(ctx context.Context, req model.Request, on func(model.Event)) (*model.Response, error) {
	if req.Agent != agents.Executor {
		return m.mind.Respond(ctx, req, on)
	}
	in := workingOf(req)
	var run int
	if _, err := fmt.Sscanf(in.Task, "run %d", &run); err != nil {
		return nil, fmt.Errorf("%q: %w", in.Task, err)
	}
	e := m.graph.errands[in.Step-1]
	var calls []model.Call
	for i := range e.calls {
		args := fmt.Sprintf(`{"parcel":%d}`, parcel(run, in.Step, i))
		called := slices.ContainsFunc(exchanges(req), func(x exchange) bool {
			return x.call.Name == e.skill && strings.Contains(args, strings.Trim(x.call.Arguments, "{} ")) && !strings.Contains(x.result, "not_executed")
		})
		if !called && (e.atOnce || len(calls) == 0) {
			calls = append(calls, model.Call{ID: fmt.Sprintf("c%d_%d", len(req.Messages), i), Name: e.skill, Arguments: args})
		}
	}
	if len(calls) == 0 {
		calls = []model.Call{{ID: "end", Name: "write_memory", Arguments: `{"data":{"total":7}}`}}
	}
	return &model.Response{Calls: calls, Model: m.Name()}, nil
}

// road is a machine that carries out one graph again and again, and dies each time.
type road struct {
	*machine
	graph graph
	depot *depot
	mark  string // passes of the failpoint count when it is there

	read    int64                  // records of the journal that were read
	intents map[int64]state.Intent // by position
	lost    map[int]bool           // parcels whose intent reached nobody, as an operator found out
}

// TestIntegrationGraphsKilled kills random plans with SIGKILL after every commit that they make,
// three hundred times. The effects are those of an undisturbed plan: none twice, and missing only
// where the record has an intent with an unknown outcome.
func TestIntegrationGraphsKilled(t *testing.T) {
	t.Parallel()
	exe := mortal(t)
	begun := beginLog(t, exe)
	var deaths, graphs atomic.Int64
	for n := range graphsAtOnce {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			for seed := uint64(n); deaths.Load() < deathsOfGraphs; seed += graphsAtOnce {
				graphs.Add(1)
				runGraph(t, exe, begun, graphOf(seed), &deaths)
			}
		})
	}
	t.Cleanup(func() {
		if deaths.Load() < deathsOfGraphs {
			t.Errorf("%d deaths", deaths.Load())
		}
		t.Logf("%d graphs, %d deaths", graphs.Load(), deaths.Load())
	})
}

// runGraph kills a graph at its first commit, then at its second, until it ends before that.
func runGraph(t *testing.T, exe, begun string, g graph, deaths *atomic.Int64) {
	t.Helper()
	dir := t.TempDir()
	d := serveDepot(t, nil)
	x := &road{
		graph: g, depot: d, mark: filepath.Join(dir, "mark"), intents: map[int64]state.Intent{}, lost: map[int]bool{},
		machine: &machine{system: &system{t: t, dir: filepath.Join(dir, "data")}, exe: exe},
	}
	if out, err := exec.CommandContext(t.Context(), "cp", "-a", begun, x.dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	m := courier{&mind{plan: func(in planning) model.Call {
		run := strings.TrimPrefix(in.Task, "Weigh the parcels: ")
		list := slices.Clone(g.steps)
		for i := range list {
			list[i].Task = run + ", " + list[i].Task
		}
		return steps(list...)
	}}, g}
	x.args = []string{"up", "--data", x.dir, "--listen", "127.0.0.1:0", "--skills", d.skills, "--rate-limit", "0", "--model", "openai:mock", "--model-url", serveModel(t, m)}
	t.Cleanup(func() {
		if x.cmd != nil {
			x.end(syscall.SIGKILL)
		}
		if t.Failed() {
			t.Logf("graph %+v\nthe last writ said:\n%s", g, x.stderr.Bytes())
		}
	})
	run := 1
	for ; deaths.Load() < deathsOfGraphs; run++ {
		x.armed(run)
		if run > 1 {
			x.completed(run - 1) // what the death before has left
		}
		if err := os.WriteFile(x.mark, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, whole := x.requestRun(run); whole { // there is no such commit, or none that anybody waits for
			x.end(syscall.SIGKILL)
			x.start()
			x.completed(run)
			return
		}
		select {
		case <-x.ended:
		case <-time.After(patience):
			t.Fatalf("writ does not die at commit %d", run)
		}
		x.cmd = nil
		deaths.Add(1)
		if err := os.Remove(x.mark); err != nil {
			t.Fatal(err)
		}
	}
	if run > 1 {
		x.start()
		x.completed(run - 1)
	}
}

// armed starts a writ that dies at the n-th commit after the mark is there.
func (x *road) armed(n int) {
	x.t.Helper()
	announced := x.run(append(os.Environ(), "WRIT_MODEL_KEY=sk-test", fmt.Sprintf("%s=%s:%d", failpoint.Variable, failpoint.JournalDurable, n), failpoint.After+"="+x.mark))
	select {
	case x.url = <-announced:
	case <-x.ended:
		x.t.Fatalf("writ up ended: %v\n%s", x.cmd.ProcessState, x.stderr.Bytes())
	case <-time.After(patience):
		x.t.Fatal("writ up says nothing")
	}
	var err error
	if x.key, err = datadir.LocalKey(x.dir); err != nil {
		x.t.Fatal(err)
	}
}

// requestRun asks for a run, whoever asked for it before, and follows it. whole is true if its
// stream ended with a word and not with writ.
func (x *road) requestRun(run int) (plan string, whole bool) {
	x.t.Helper()
	req, err := http.NewRequestWithContext(x.t.Context(), http.MethodPost, x.url+"/agent/run", strings.NewReader(fmt.Sprintf(`{"stream":true,"message":"Weigh the parcels: run %d"}`, run)))
	if err != nil {
		x.t.Fatal(err)
	}
	req.Header.Set("X-Api-Key", x.key)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", fmt.Sprintf("run-%d", run))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", false // it died first
	}
	defer resp.Body.Close()
	plan = resp.Header.Get("X-Plan-Id")
	raw, err := io.ReadAll(bufio.NewReader(resp.Body))
	return plan, err == nil && strings.Contains(string(raw), "event: done")
}

// completed has a run that was killed come to its end, as a client that asks again and an
// operator who looks at the depot would.
func (x *road) completed(run int) {
	x.t.Helper()
	plan, _ := x.requestRun(run)
	deadline := time.Now().Add(patience)
	for {
		x.resolve()
		v := x.plan(plan)
		if v.Status == catalog.PlanComplete || v.Status == catalog.PlanFailed {
			break
		}
		if time.Now().After(deadline) {
			x.t.Fatalf("run %d does not end: %+v", run, v)
		}
		x.requestRun(run)
	}
	x.judged(run, plan)
}

// resolve resolves every once intent with an unknown outcome by the depot's records.
func (x *road) resolve() {
	x.t.Helper()
	records, err := sqlite.OpenRecords(x.t.Context(), filepath.Join(x.dir, "journal"))
	if err != nil {
		x.t.Fatal(err)
	}
	defer records.Close()
	for rec, err := range records.Scan(x.t.Context(), x.read) {
		if err != nil {
			x.t.Fatal(err)
		}
		x.read = rec.Position + 1
		switch rec.Kind {
		case storage.KindIntent:
			s, err := state.ReadIntent(rec)
			if err != nil {
				x.t.Fatal(err)
			}
			x.intents[rec.Position] = s
		case storage.KindOutcome:
			out, of, err := state.OutcomeOf(rec)
			if err != nil {
				x.t.Fatal(err)
			}
			if out.Status == intents.StatusIndetermined {
				x.found(x.intents[of])
			}
		default:
		}
	}
}

// found reports how an intent ended, from the depot's records.
func (x *road) found(o state.Intent) {
	x.t.Helper()
	id, status := o.Decision.IntentID, intents.Done
	if !slices.Contains(x.depot.ids("parcel_send"), id) {
		status = intents.Failed
		var args struct {
			Input struct{ Parcel int }
		}
		if err := json.Unmarshal(o.Args, &args); err != nil {
			x.t.Fatal(err)
		}
		x.lost[args.Input.Parcel] = true
	}
	x.operate("intent.resolve", catalog.IntentResolve{IntentID: id, Status: string(status), Reason: "the depot says so"})
}

// judged compares a run's effects with its graph.
func (x *road) judged(run int, plan string) {
	x.t.Helper()
	v := x.plan(plan)
	if v.Status != catalog.PlanComplete || v.Revision != 1 || v.ReplanCount != 0 || len(v.Steps) != len(x.graph.steps) {
		x.t.Errorf("run %d: %+v", run, v)
	}
	for n, e := range x.graph.errands {
		once := e.skill == "parcel_send"
		for i := range e.calls {
			p := parcel(run, n+1, i)
			if times := x.depot.times(e.skill, p); times > 1 && once || times == 0 && !(once && x.lost[p]) || times > 0 && x.lost[p] {
				x.t.Errorf("run %d, step %d: %s of %d was called %d times; lost %v", run, n+1, e.skill, p, times, x.lost[p])
			}
		}
	}
}
