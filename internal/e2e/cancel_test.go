package e2e

import (
	"encoding/json"
	"net/http"
	"slices"
	"testing"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/bus"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/client"
)

// TestCancel stops a plan in the middle of a skill call: nobody but its user can, followers are
// notified, and its task does nothing more.
func TestCancel(t *testing.T) {
	t.Parallel()
	reached, release := make(chan struct{}), make(chan struct{})
	slow := serveSkills(t, skill{name: "stock_list", about: "The stock of the warehouse.", do: func(json.RawMessage) (any, error) {
		close(reached)
		<-release
		return stock, nil
	}})
	m := &mind{act: listStock, plan: func(planning) model.Call {
		return steps(step(1, "list the stock", "stock_list", 0, stockShape))
	}}
	s := start(t, setup{Skills: []string{slow.url}, Model: m})
	ana, bob := s.addPerson("default", "ana", "user"), s.addPerson("default", "bob", "user")

	type followed struct {
		plan string
		last []bus.FrameKind
		err  error
	}
	ended := make(chan followed, 1)
	go func() {
		var f followed
		f.plan, f.err = client.Client{URL: s.url, Key: ana.key}.Run(t.Context(), stockTask, func(frame client.Frame) error {
			f.last = append(f.last, bus.FrameKind(frame.Event))
			return nil
		})
		ended <- f
	}()
	<-reached
	plan := ""
	for _, o := range s.intents("") {
		if o.Type == "plan.open" {
			plan = o.Context.PlanID
		}
	}
	if status, p := s.call(bob, http.MethodDelete, "/agent/plans/"+plan, nil, nil); status != http.StatusNotFound && status != http.StatusForbidden {
		t.Errorf("another user's cancel: HTTP %d %+v", status, p)
	}
	var view catalog.PlanView
	if s.call(ana, http.MethodGet, "/agent/plans/"+plan, nil, &view); view.Status != catalog.PlanExecuting {
		t.Errorf("the plan is %s", view.Status)
	}
	if status, p := s.call(ana, http.MethodDelete, "/agent/plans/"+plan, nil, nil); status != http.StatusOK {
		t.Errorf("her own cancel: HTTP %d %+v", status, p)
	}
	f := <-ended
	if n := len(f.last); f.err != nil || f.plan != plan || n < 2 || f.last[n-2] != bus.FrameError || f.last[n-1] != bus.FrameDone {
		t.Errorf("the stream ended with %v: %v", f.last, f.err)
	}
	if s.call(ana, http.MethodGet, "/agent/plans/"+plan, nil, &view); view.Status != catalog.PlanFailed || view.Failure == nil || view.Failure.Reason != "cancelled" {
		t.Errorf("the plan is %s, failure %+v", view.Status, view.Failure)
	}
	close(release)

	s.await("the call, which had begun, ends on record", func() bool {
		return slices.ContainsFunc(s.intents(plan), func(o intent) bool { return o.Type == "skill.call" && o.Outcome != nil })
	})
	for _, o := range s.intents(plan) {
		if o.Type == "write_memory" {
			t.Errorf("a task that was stopped left a record: %s", o.Decision.Code)
		}
	}
}
