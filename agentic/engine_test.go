package agentic

import (
	"encoding/json"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"aob.dev/writ/bus"
	"aob.dev/writ/bus/natsserver"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// ofRun answers a transition of a run of two nodes with the next nodes.
func ofRun(epoch int, next ...catalog.NextNode) func(placed) *intents.Answer {
	v := catalog.PlanView{
		PlanID: theTurn.PlanID, Status: catalog.PlanExecuting, Epoch: epoch, PlanDigest: digest, Run: &catalog.RunView{RunID: theTurn.PlanID, WorkflowID: "w"},
		Steps: []catalog.StepView{{PlanStep: catalog.PlanStep{Step: 1, ID: "a"}, Status: catalog.StepPending}, {PlanStep: catalog.PlanStep{Step: 2, ID: "b"}, Status: catalog.StepPending}},
	}
	return func(p placed) *intents.Answer {
		a := done(v)(p)
		if p.Type == "plan.get" {
			a = done(catalog.PlanGetResult{Plan: v})(p)
		}
		a.Details = json.RawMessage(marshal(catalog.PlanDetails{Next: next}))
		return a
	}
}

const digest = "sha256:0000000000000000000000000000000000000000000000000000000000000000"

// engineOn runs the workflow of theTurn with a clock of its own.
func engineOn(c *core, now func() time.Time, after func(time.Duration) <-chan time.Time) (ended chan struct{}) {
	_, ended = startedEngine(c, now, after)
	return ended
}

func startedEngine(c *core, now func() time.Time, after func(time.Duration) <-chan time.Time) (e *Engine, ended chan struct{}) {
	cfg := c.config(natsserver.Workflow, nil)
	cfg.After = after
	if now != nil {
		cfg.Now = now
	}
	c.serve(natsserver.Task, ignoring(NewTasks(c.config(natsserver.Task, nil)).Serve))
	turn := c.turn()
	e, ended = NewEngine(cfg), make(chan struct{})
	go func() {
		defer close(ended)
		e.run(c.t.Context(), bus.PlanDispatch{
			TurnRef: turn.TurnRef, Driver: "d1",
		})
	}()
	return e, ended
}

func awaitEnd(t *testing.T, ended <-chan struct{}) {
	t.Helper()
	select {
	case <-ended:
	case <-time.After(patience):
		t.Fatal("the engine does not end")
	}
}

// The retry of a node waits on the engine's clock. A permanent refusal fails the run with its
// reason.
func TestEngineWaitsForRetry(t *testing.T) {
	c := newCore(t)
	var ahead atomic.Int64
	now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	due := time.Now().Add(time.Minute)
	next := catalog.NextNode{Step: 2, Next: catalog.NextRun, RetryAt: &due}
	c.on("plan.claim", ofRun(1, next))
	c.on("plan.get", ofRun(1, next))
	c.on("step", refuse(intents.PolicyDenied, "not today"))
	slept, fire := make(chan time.Duration, 1), make(chan time.Time)
	ended := engineOn(c, now, func(d time.Duration) <-chan time.Time {
		slept <- d
		return fire
	})
	d := <-slept
	if d <= 0 || d > time.Minute || len(c.ofType("step")) > 0 {
		t.Errorf("sleeps %s, after %v", d, types(c.allPlaced()))
	}
	ahead.Store(int64(time.Minute))
	close(fire)
	awaitEnd(t, ended)
	if len(c.ofType("step")) != 1 {
		t.Errorf("intents %v", types(c.allPlaced()))
	}
	closed := c.ofType("plan.close")
	if len(closed) != 1 || closed[0].Role != intents.RoleWorkflow || !strings.Contains(string(closed[0].Args), "not today") {
		t.Errorf("closed by %+v", closed)
	}
}

// Nodes that no edge reaches are skipped. An engine that has lost the run to another one ends
// silently.
func TestEngineSkipsAndYields(t *testing.T) {
	c := newCore(t)
	c.on("plan.claim", ofRun(1, catalog.NextNode{Step: 1, Next: catalog.NextSkip}))
	c.on("node.skip", ofRun(1, catalog.NextNode{Step: 2, Next: catalog.NextRun}))
	c.on("step", refuse(intents.MalformedArgs, "another driver has the run"))
	c.on("plan.get", ofRun(2))
	awaitEnd(t, engineOn(c, nil, nil))
	if got := types(c.allPlaced()); !slices.Equal(got, []string{"plan.claim", "node.skip", "step", "plan.get", "plan.get"}) {
		t.Errorf("intents %v", got)
	}
}

// A node waits for people when its task ends, and they decide before the engine has read the run. The
// engine leaves the run to its next driver; it does not try to close it.
func TestEngineDecidedMeanwhile(t *testing.T) {
	c := newCore(t)
	c.on("plan.claim", ofRun(1))
	c.on("plan.get", ofRun(1, catalog.NextNode{Step: 1, Next: catalog.NextRun}))
	awaitEnd(t, engineOn(c, nil, nil))
	if got := types(c.allPlaced()); !slices.Equal(got, []string{"plan.claim", "plan.get"}) {
		t.Errorf("intents %v", got)
	}
}

// An engine that learns of a patch reads the run again, and begins ready nodes while others are
// not yet ready.
func TestEngineSeesPatchAtOnce(t *testing.T) {
	c := newCore(t)
	due := time.Now().Add(time.Hour)
	later := catalog.NextNode{Step: 2, Next: catalog.NextRun, RetryAt: &due}
	c.on("plan.claim", ofRun(1, later))
	c.on("plan.get", ofRun(1, later, catalog.NextNode{Step: 1, Next: catalog.NextRun}))
	c.on("step", refuse(intents.PolicyDenied, "not today"))
	waits := make(chan struct{}, 8)
	e, ended := startedEngine(c, nil, func(time.Duration) <-chan time.Time {
		waits <- struct{}{}
		return nil
	})
	<-waits
	if n := len(c.ofType("plan.get")) + len(c.ofType("step")); n != 0 {
		t.Fatalf("intents %v", types(c.allPlaced()))
	}
	other := e.grants.take(t.Context(), bus.FreshGrant{PlanID: theTurn.PlanID, Driver: "another", Patched: true})
	its := e.grants.take(t.Context(), bus.FreshGrant{PlanID: theTurn.PlanID, Driver: "d1", Patched: true})
	if other.Accepted || !its.Accepted {
		t.Errorf("taken by another driver %t, by its own %t", other.Accepted, its.Accepted)
	}
	awaitEnd(t, ended)
	if got := c.ofType("step"); len(got) != 1 || !strings.Contains(string(got[0].Args), `"step":1`) {
		t.Errorf("intents %v", types(c.allPlaced()))
	}
}
