package e2e

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents/catalog"
)

const (
	priceShape = "array<{item: string, price: number}>"
	joinScript = `import json
d = json.load(open(input_file))
stock, listed = (d[label] for label in sorted(d))
prices = {r["item"]: r["price"] for r in listed}
print(json.dumps({"total": sum(r["quantity"] * prices[r["item"]] for r in stock)}))
`
)

// joining plans two lookups that do not depend on each other, and a step that joins them.
func joining(_ planning) model.Call {
	prices, join := step(2, "list the prices", "price_list", 0, priceShape), step(3, "value the stock", "", 0, "{total: number}")
	prices.Parallel, join.Inputs = true, []int{1, 2}
	return steps(step(1, "list the stock", "stock_list", 0, stockShape), prices, join)
}

// lookUpAndJoin carries out such a plan.
func lookUpAndJoin(in working) action {
	switch {
	case len(in.Skills) == 0:
		return action{call: call("exec_python", marshalled(map[string]any{"script": joinScript, "inputs": in.Labels}))}
	case len(in.Calls) == 0:
		return use(in.Skills[0], "{}")
	}
	return finish
}

// meet makes a skill that answers once the other one was called, too.
func meet(name string, v any, mine, other chan struct{}) skill {
	var once sync.Once
	return skill{name: name, about: "The " + name + " of today.", do: func(json.RawMessage) (any, error) {
		once.Do(func() { close(mine) })
		select {
		case <-other:
			return v, nil
		case <-time.After(20 * time.Second):
			return nil, errors.New("the other skill is not called")
		}
	}}
}

var prices = []map[string]any{{"item": "bolt", "price": 1.5}, {"item": "nut", "price": 2}, {"item": "washer", "price": 0.5}}

// TestSideBySide: two steps run at once, as their servers and the record show, and a
// third one joins what they have found.
func TestSideBySide(t *testing.T) {
	t.Parallel()
	a, b := make(chan struct{}), make(chan struct{})
	server := serveSkills(t, meet("stock_list", stock, a, b), meet("price_list", prices, b, a))
	s := start(t, setup{Skills: []string{server.url}, Model: &mind{plan: joining, act: lookUpAndJoin}})
	got := s.ask(s.as("ana"), stockTask)
	if got.Status != "complete" || got.Plan.ReplanCount != 0 {
		t.Fatalf("%s: %s, %+v", got.Status, got.Reason, got.Plan)
	}
	sameJSON(t, map[string]float64{"total": 16}, got.Data)
	at := func(typ string, n int) int64 {
		t.Helper()
		i := slices.IndexFunc(got.called(typ), func(o intent) bool { return o.Context.Step == n })
		if i < 0 {
			t.Fatalf("step %d has no %s", n, typ)
		}
		return got.called(typ)[i].Position
	}
	if last, first := max(at("skill.call", 1), at("skill.call", 2)), min(at("step.finish", 1), at("step.finish", 2)); last > first {
		t.Errorf("a call at %d, after a step that ended at %d", last, first)
	}
	if joined, last := at("exec_python", 3), max(at("step.finish", 1), at("step.finish", 2)); joined < last {
		t.Errorf("joined at %d, before a step that ended at %d", joined, last)
	}
}

// TestOtherBranch: while one step waits for a person, the one beside it is carried out;
// then both are joined, and neither skill was called twice.
func TestOtherBranch(t *testing.T) {
	t.Parallel()
	server := serveSkills(t,
		skill{name: "stock_list", about: "The stock of today.", do: always(stock)},
		skill{name: "price_list", about: "The prices of today.", do: always(prices)},
	)
	s := start(t, setup{Skills: []string{server.url}, Model: &mind{plan: joining, act: lookUpAndJoin}})
	ben, _, _ := s.holds("price_list")
	ana := s.as("ana")
	turn := s.hold(ana, stockTask)
	v := s.planOf(ana, turn.PlanID)
	if v.Status != catalog.PlanExecuting || v.Steps[0].Status != catalog.StepDone || v.Steps[1].Status != catalog.StepPendingApproval || v.Steps[2].Status != catalog.StepPending || turn.Approval.Step != 2 {
		t.Fatalf("%+v, %+v", v, turn)
	}
	_, seen := s.streamEnd(ana, turn.PlanID, "")
	if got, p := s.decide(ben, turn.Approval.IntentID, "approve", ""); p.Code != "" || got.State != catalog.ApprovalReleased {
		t.Fatalf("%+v %+v", got, p)
	}
	if last, _ := s.streamEnd(ana, turn.PlanID, seen); last != "done" {
		t.Fatalf("the stream ends with %s", last)
	}
	if v = s.planOf(ana, turn.PlanID); v.Status != catalog.PlanComplete || v.ReplanCount != 0 || len(v.Steps) != 3 {
		t.Errorf("%+v", v)
	}
	if a, b := server.count("stock_list"), server.count("price_list"); a != 1 || b != 1 {
		t.Errorf("called %d and %d times", a, b)
	}
}

// TestApprovedBesideOthers: a call of one step is approved while the step beside it is at work,
// which cannot end before that call is made. Both finish, each once, in one turn.
func TestApprovedBesideOthers(t *testing.T) {
	t.Parallel()
	listing, pricing := make(chan struct{}), make(chan struct{})
	price := skill{name: "price_list", about: "The prices of today.", do: func(json.RawMessage) (any, error) {
		close(pricing)
		return prices, nil
	}}
	server := serveSkills(t, meet("stock_list", stock, listing, pricing), price)
	s := start(t, setup{Skills: []string{server.url}, Model: &mind{plan: joining, act: lookUpAndJoin}})
	ben, _, _ := s.holds("price_list")
	ended := make(chan turn)
	go func() { ended <- s.ask(s.as("ana"), stockTask) }()
	<-listing
	s.await("a call waits", func() bool { return len(s.inbox(ben)) == 1 })
	if got, p := s.decide(ben, s.inbox(ben)[0].IntentID, "approve", ""); p.Code != "" || got.State != catalog.ApprovalReleased {
		t.Fatalf("%+v %+v", got, p)
	}
	got := <-ended
	if got.Status != "complete" || got.Plan.ReplanCount != 0 || len(got.Plan.Steps) != 3 || server.count("stock_list") != 1 || server.count("price_list") != 1 {
		t.Errorf("%s: %s, %+v, called %d and %d times", got.Status, got.Reason, got.Plan, server.count("stock_list"), server.count("price_list"))
	}
}

// TestFailureBesideOthers: a step fails while the one beside it is at work, whose result
// stays; the revision replaces the failed one alone, and what waited for it.
func TestFailureBesideOthers(t *testing.T) {
	t.Parallel()
	failed := make(chan struct{})
	server := serveSkills(t,
		skill{name: "stock_list", about: "The stock of today.", do: func(json.RawMessage) (any, error) {
			select {
			case <-failed:
			case <-time.After(20 * time.Second):
			}
			return stock, nil
		}},
		skill{name: "price_list", about: "The prices of today.", do: always(prices)},
	)
	m, tries := new(mind), 0
	m.act = func(in working) action {
		if in.Task == "list the prices" && len(in.Calls) == 0 {
			if tries++; tries == 1 {
				close(failed)
				return insufficient("the list is being printed", "")
			}
		}
		return lookUpAndJoin(in)
	}
	m.plan = func(in planning) model.Call {
		if in.Failed == nil {
			return joining(in)
		}
		again, join := step(in.FirstStep, "list the prices", "price_list", 0, priceShape), step(in.FirstStep+1, "value the stock", "", 0, "{total: number}")
		join.Inputs = []int{1, in.FirstStep}
		return steps(again, join)
	}
	s := start(t, setup{Skills: []string{server.url}, Model: m})
	got := s.ask(s.as("ana"), stockTask)
	if got.HTTP != http.StatusOK || len(got.Plan.History) != 1 || got.Plan.History[0].FailedStep != 2 || got.Plan.Revision != 2 {
		t.Fatalf("%s: %s, %+v", got.Status, got.Reason, got.Plan)
	}
	var numbers []int
	for _, st := range got.Plan.Steps {
		numbers = append(numbers, st.Step)
	}
	if !slices.Equal(numbers, []int{1, 4, 5}) || got.Plan.Steps[0].Revision != 1 || server.count("stock_list") != 1 {
		t.Errorf("steps %v: %+v", numbers, got.Plan.Steps)
	}
	if replan := m.plannings()[len(m.plannings())-1]; len(replan.Completed) != 1 || replan.FirstStep != 4 || replan.MaxSteps != 9 {
		t.Errorf("the planner was told %+v", replan)
	}
}

// TestDropped: people have rejected what one step wanted, and the step beside it has failed.
// The revision goes another way, without the rejected step, and the plan is completed.
func TestDropped(t *testing.T) {
	t.Parallel()
	server := serveSkills(t,
		skill{name: "stock_list", about: "The stock of today.", do: always(stock)},
		skill{name: "price_list", about: "The prices of today.", do: always(prices)},
	)
	rejected, m := make(chan struct{}), new(mind)
	m.act = func(in working) action {
		if in.Task == "value the stock" {
			return action{call: call("write_memory", `{"data":{"total":0}}`)}
		}
		if toolOf(in.Skills[0]) == "price_list" {
			return lookUpAndJoin(in)
		}
		<-rejected
		return insufficient("nothing is worth anything without prices", "")
	}
	m.plan = func(in planning) model.Call {
		if in.Failed == nil {
			return joining(in)
		}
		other := step(in.FirstStep, "value the stock", "stock_list", 0, "{total: number}")
		revision := map[string]any{"steps": []catalog.PlanStep{other}}
		if len(in.Violations) == 0 { // else the rejected step has failed by itself before the other one
			revision["drop"] = []int{2}
		}
		return call("plan", marshalled(revision))
	}
	s := start(t, setup{Skills: []string{server.url}, Model: m})
	ben, _, _ := s.holds("price_list")
	ended := make(chan turn)
	go func() { ended <- s.ask(s.as("ana"), stockTask) }()
	s.await("a call waits", func() bool { return len(s.inbox(ben)) == 1 })
	if _, p := s.decide(ben, s.inbox(ben)[0].IntentID, "reject", "too dear"); p.Code != "" {
		t.Fatalf("%+v", p)
	}
	close(rejected)
	got := <-ended
	if got.Status != "complete" || len(got.Plan.Steps) != 1 || got.Plan.Steps[0].Step != 4 || got.Plan.Revision != 2 || server.count("price_list") != 0 {
		t.Errorf("%s: %s, %+v", got.Status, got.Reason, got.Plan)
	}
}
