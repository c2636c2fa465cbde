package state_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state"
)

// testLog is a log that is built record by record.
type testLog struct {
	testing.TB
	*state.State
	at   time.Time
	next int64
	all  []state.Content
}

func tell(t testing.TB) *testLog {
	t.Helper()
	l := &testLog{TB: t, State: state.New(), at: time.Date(2026, 7, 1, 10, 0, 0, 0, time.UTC)}
	return l
}

// take adds a record and returns its position.
func (l *testLog) take(c state.Content) int64 {
	l.Helper()
	c.Position, c.At = l.next, l.at
	if o := c.Intent; o != nil {
		o.Position, o.Recorded, o.At, o.Now = c.Position, c.Position, c.At, c.At
		if o.Decision.IntentID == "" {
			o.Decision.IntentID = fmt.Sprint("intent ", c.Position)
		}
	}
	l.next++
	l.all = append(l.all, c)
	if err := l.Take(c); err != nil {
		l.Fatal(err)
	}
	return c.Position
}

// advance adds an empty record after some time.
func (l *testLog) advance(d time.Duration) { l.at = l.at.Add(d); l.take(state.Content{}) }

// transition adds an intent of the router about a plan.
func (l *testLog) transition(typ string, args any) string {
	l.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		l.Fatal(err)
	}
	o := intent(typ, "")
	o.Args, o.Decision.Executor = raw, catalog.ExecutorRouter
	l.take(state.Content{Intent: o})
	return o.Decision.IntentID
}

func intent(typ, plan string) *state.Intent {
	return &state.Intent{
		Type: typ, Args: json.RawMessage(`{}`), Tenant: "default", User: "ana", Context: intents.Context{PlanID: plan, Step: 1, Revision: 1},
		Decision: intents.Decision{Verdict: intents.Allow, Executor: "skills", Effect: string(catalog.Once)},
	}
}

// call adds an intent of a plan that an executor carries out.
func (l *testLog) call(plan string) int64 {
	l.Helper()
	return l.take(state.Content{Intent: intent("skill.call", plan)})
}

// hold adds an intent of a plan that is pending approval.
func (l *testLog) hold(plan string) int64 {
	l.Helper()
	o := intent("skill.call", plan)
	o.Decision.Verdict, o.Decision.Hold = intents.Hold, &intents.HoldTerms{Deadline: intents.FormatTime(l.at.Add(time.Hour))}
	return l.take(state.Content{Intent: o})
}

func (l *testLog) ends(of int64, status intents.Status) {
	l.Helper()
	l.take(state.Content{Outcome: &intents.Outcome{Target: of, Status: status, Code: intents.OK}, Target: of})
}

func (l *testLog) has(plan string) bool {
	_, ok := l.View().Plan("default", plan)
	return ok
}

// closed opens a plan and a task of it, and closes it.
func (l *testLog) closed(plan string) (kid string) {
	l.Helper()
	return l.closedAfter(plan, "Which ten?")
}

func (l *testLog) closedAfter(plan, request string) (kid string) {
	l.Helper()
	l.transition("plan.open", catalog.PlanOpen{PlanID: plan, Task: request})
	l.transition("plan.claim", catalog.PlanClaim{PlanID: plan, Epoch: 1, Driver: "d"})
	digest := l.transition("plan", catalog.Plan{PlanID: plan, Epoch: 1, Revision: 1, Steps: []catalog.PlanStep{{Step: 1, Task: "Ask."}}})
	key, err := intents.GenerateSigner(intents.RoleTask)
	if err != nil {
		l.Fatal(err)
	}
	l.transition("step", catalog.Step{
		PlanID: plan, PlanDigest: digest, Step: 1, Epoch: 1, TaskID: "task of " + plan, JWK: key.VerificationKey().ToJWK(),
		Deadline: intents.FormatTime(l.at.Add(time.Hour)),
	})
	l.transition("cancel", catalog.Cancel{PlanID: plan})
	return key.KID
}

// TestClosedPlansLeave: a closed plan leaves with its task and its key once the latest
// record is 48 hours younger than its close, and not before.
func TestClosedPlansLeave(t *testing.T) {
	l := tell(t)
	kid := l.closed("p1")
	l.transition("plan.open", catalog.PlanOpen{PlanID: "p2", Task: "Which ten?"})
	there := func() (all bool, some bool) {
		_, task := l.View().Task("default/task of p1")
		_, err := l.View().Key(kid)
		return l.has("p1") && task && err == nil, l.has("p1") || task || intents.CodeOf(err) != intents.KeyUnknown
	}
	l.advance(state.PlanKept - time.Millisecond)
	if all, _ := there(); !all || l.Stats() != (state.Stats{Open: 1, Closed: 1, Tasks: 1, Words: l.Stats().Words}) {
		t.Errorf("left too early: %+v", l.Stats())
	}
	l.advance(time.Millisecond)
	if _, some := there(); some || l.Stats().Closed != 0 || l.Stats().Tasks != 0 {
		t.Errorf("still there: %+v", l.Stats())
	}
	if _, _, ok := l.PlanWithoutTexts("default", "p1"); !ok {
		t.Error("not told with the record that it leaves with")
	}
	l.advance(0)
	if _, _, ok := l.PlanWithoutTexts("default", "p1"); ok {
		t.Error("told after it left")
	}
	l.advance(1000 * time.Hour)
	if !l.has("p2") {
		t.Error("an open plan has left")
	}
	if l.call("p1"); l.has("p1") {
		t.Error("an intent has brought a plan back")
	}
}

// TestPlansWaitForTheirIntents: a plan stays while one of its intents is open, held or
// indeterminate; it leaves with the record that ends the last of them.
func TestPlansWaitForTheirIntents(t *testing.T) {
	for name, c := range map[string]func(l *testLog) (resolve func()){
		"open": func(l *testLog) func() {
			at := l.call("p1")
			return func() { l.ends(at, intents.Done) }
		},
		"held": func(l *testLog) func() {
			at := l.hold("p1")
			return func() { l.ends(at, intents.Failed) }
		},
		"released": func(l *testLog) func() {
			at := l.hold("p1")
			l.take(state.Content{Release: &state.Release{Target: at, Inputs: intents.DecisionInputs{Now: intents.FormatTime(l.at)}}})
			return func() { l.ends(at, intents.Done) }
		},
		"unknown": func(l *testLog) func() {
			at := l.call("p1")
			l.ends(at, intents.StatusIndetermined)
			return func() {
				l.transition("intent.resolve", catalog.IntentResolve{IntentID: fmt.Sprint("intent ", at), Status: "done", Reason: "seen"})
			}
		},
		"several": func(l *testLog) func() {
			one, two := l.call("p1"), l.hold("p1")
			return func() {
				l.ends(two, intents.Failed)
				if !l.has("p1") {
					l.Error("has left with the first of two")
				}
				l.ends(one, intents.Done)
			}
		},
	} {
		for _, open := range []string{"before its close", "after its close"} {
			t.Run(name+" "+open, func(t *testing.T) {
				l := tell(t)
				var resolve func()
				if open == "after its close" {
					l.closed("p1")
					resolve = c(l)
				} else {
					l.transition("plan.open", catalog.PlanOpen{PlanID: "p1", Task: "Which ten?"})
					resolve = c(l)
					l.transition("cancel", catalog.Cancel{PlanID: "p1"})
				}
				l.advance(2 * state.PlanKept)
				if !l.has("p1") {
					t.Fatal("has left before its intent ended")
				}
				resolve()
				if l.has("p1") {
					t.Error("still there")
				}
			})
		}
	}
}

// TestImagesLeaveAlike: the records alone determine which plans are in the state. A state that
// was restored from a snapshot between any two records has the same digest from then on, and
// both have the plans that a plain reading of the rule gives.
func TestImagesLeaveAlike(t *testing.T) {
	for seed := range uint64(8) {
		random := rand.New(rand.NewPCG(seed, 7))
		l := tell(t)
		plans, opened := map[string]*expected{}, map[string]bool{}
		calls := map[int64]string{} // open and held intents, with their plan
		unknown := map[int64]string{}
		images := []*state.State{}
		for n := range 150 {
			l.at = l.at.Add(time.Duration(random.IntN(16)) * time.Hour)
			plan := fmt.Sprint("p", random.IntN(n/8+1))
			p := plans[plan]
			switch k := random.IntN(8); {
			case !opened[plan]:
				plans[plan], opened[plan] = &expected{}, true
				l.transition("plan.open", catalog.PlanOpen{PlanID: plan, Task: "Which ten?"})
			case k < 2 && p != nil && p.closed.IsZero():
				p.closed = l.at
				l.transition("cancel", catalog.Cancel{PlanID: plan})
			case k < 4:
				calls[l.call(plan)] = plan
				p.waits(1)
			case k == 4:
				calls[l.hold(plan)] = plan
				p.waits(1)
			case k < 7 && len(calls) > 0:
				at := some(calls)
				if random.IntN(3) == 0 {
					l.ends(at, intents.StatusIndetermined)
					unknown[at] = calls[at]
				} else {
					l.ends(at, intents.Done)
					plans[calls[at]].waits(-1)
				}
				delete(calls, at)
			case len(unknown) > 0:
				at := some(unknown)
				l.transition("intent.resolve", catalog.IntentResolve{IntentID: fmt.Sprint("intent ", at), Status: "failed", Reason: "seen"})
				plans[unknown[at]].waits(-1)
				delete(unknown, at)
			default:
				l.advance(0)
			}
			for id, p := range plans {
				if !p.closed.IsZero() && p.pending == 0 && !l.at.Before(p.closed.Add(48*time.Hour)) {
					delete(plans, id)
					forgetCalls(calls, unknown, id)
				}
			}
			images = follow(t, l, images, random.IntN(10) == 0)
			for id, p := range plans {
				if !l.has(id) {
					t.Fatalf("seed %d, record %d: %s has left: %+v", seed, l.next, id, p)
				}
			}
			if h := l.Stats(); h.Open+h.Closed != len(plans) {
				t.Fatalf("seed %d, record %d: %+v, want %d plans", seed, l.next, h, len(plans))
			}
		}
	}
}

type expected struct {
	closed  time.Time
	pending int
}

func (p *expected) waits(n int) {
	if p != nil {
		p.pending += n
	}
}

// forgetCalls drops the calls of a plan that has left.
func forgetCalls(calls, unknown map[int64]string, plan string) {
	for _, m := range []map[int64]string{calls, unknown} {
		for at, of := range m {
			if of == plan {
				m[at] = ""
			}
		}
	}
}

func some(m map[int64]string) int64 {
	at := int64(-1)
	for k := range m {
		at = max(at, k)
	}
	return at
}

// follow applies the log's last record to states that were restored from a snapshot earlier, and
// adds one more such state.
func follow(t *testing.T, l *testLog, images []*state.State, again bool) []*state.State {
	t.Helper()
	_, want, err := l.Digest()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range images {
		if err := s.Take(l.all[len(l.all)-1]); err != nil {
			t.Fatal(err)
		}
		if _, got, err := s.Digest(); got != want || err != nil {
			t.Fatalf("another state after record %d, %v", l.next-1, err)
		}
	}
	if !again {
		return images
	}
	var image bytes.Buffer
	if _, err := l.Snapshot(&image); err != nil {
		t.Fatal(err)
	}
	s, err := state.Open(&image)
	if err != nil {
		t.Fatal(err)
	}
	return append(images, s)
}

// alone names the variable by which a process of the test's program measures its heap.
const alone = "WRIT_TEST_ALONE"

// TestClosedPlansLeaveMemory: closed plans hold no texts, and no memory once they left. It measures in a
// process of its own: timers hold what earlier tests made.
func TestClosedPlansLeaveMemory(t *testing.T) {
	if os.Getenv(alone) == "" {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), alone+"=1")
		if out, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("PASS")) {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	const plans, size = 5_000, 16 << 10
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	fill(tell(t), 1, size) // excludes what a process loads only once
	l := tell(t)
	before := heap()
	fill(l, plans, size)
	full := heap() - before
	l.advance(state.PlanKept)
	l.advance(0) // they are returned once more
	left := heap() - before
	runtime.KeepAlive(l)
	if full < plans<<10 || full > plans*size || left > full/20 {
		t.Errorf("%d bytes of %d closed plans, %d after they left", full, plans, left)
	}
}

// fill closes plans whose requests have a size, each with a task.
func fill(l *testLog, plans, size int) {
	for i := range plans {
		l.closedAfter(fmt.Sprint("p", i), strings.Repeat("x", size))
		l.all = nil
	}
}

// BenchmarkClosedPlans measures the process memory, in MB, of 100,000 closed plans with requests
// of 16 kB, and what is left of it once they have left. Run it once:
//
//	go test ./state -run - -bench ClosedPlans -benchtime 1x
func BenchmarkClosedPlans(b *testing.B) {
	for b.Loop() {
		l := tell(b)
		before := resident(b)
		fill(l, 100_000, 16<<10)
		b.ReportMetric(float64(resident(b)-before), "MB-closed")
		l.advance(state.PlanKept)
		l.advance(0)
		b.ReportMetric(float64(resident(b)-before), "MB-left")
		runtime.KeepAlive(l)
	}
}

// resident memory of the process, in MB.
func resident(t testing.TB) int64 {
	t.Helper()
	debug.FreeOSMemory()
	raw, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	var size, pages int64
	if _, err := fmt.Sscan(string(raw), &size, &pages); err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize()) >> 20
}
