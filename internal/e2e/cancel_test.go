package e2e

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
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
	if s.call(ana, http.MethodGet, "/agent/plans/"+plan, nil, &view); view.Status != catalog.PlanFailed || view.Failure == nil || view.Failure.Reason != "cancelled by ana" {
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

// hanging is a model that says when it is asked, and answers when its request ends.
type hanging struct{ asked, ended chan struct{} }

func (hanging) Name() string { return "hanging" }

func (m hanging) Respond(ctx context.Context, _ model.Request, _ func(model.Event)) (*model.Response, error) {
	m.asked <- struct{}{}
	<-ctx.Done()
	m.ended <- struct{}{}
	return nil, ctx.Err()
}

// TestCancelIntent: a cancel that somebody signs ends the request to the model and the stream of the
// turn as a DELETE does, and the plan says by whom and why it was cancelled.
func TestCancelIntent(t *testing.T) {
	t.Parallel()
	m := hanging{make(chan struct{}, 9), make(chan struct{}, 9)}
	s := start(t, setup{Model: m})
	ana := s.addPerson("default", "ana", "user")
	frames, followed := []client.Frame{}, make(chan error, 1)
	go func() {
		_, err := client.Client{URL: s.url, Key: ana.key}.Run(t.Context(), stockTask, func(f client.Frame) error {
			frames = append(frames, f)
			return nil
		})
		followed <- err
	}()
	<-m.asked
	plan := ""
	for _, o := range s.intents("") {
		if o.Type == "plan.open" {
			plan = o.Context.PlanID
		}
	}
	if status, a, p := s.sign(ana, "cancel", catalog.Cancel{PlanID: plan, Reason: "no longer needed"}); status != http.StatusOK {
		t.Fatalf("%+v %+v", a, p)
	}
	<-m.ended
	if err := <-followed; err != nil {
		t.Fatal(err)
	}
	if n := len(frames); n < 2 || frames[n-1].Event != string(bus.FrameDone) || !strings.Contains(string(frames[n-2].Data), "stopped by ana") {
		t.Errorf("%+v", frames)
	}
	var view catalog.PlanView
	if s.call(ana, http.MethodGet, "/agent/plans/"+plan, nil, &view); view.Status != catalog.PlanFailed || view.Failure == nil || view.Failure.Reason != "cancelled by ana: no longer needed" {
		t.Errorf("the plan is %s, failure %+v", view.Status, view.Failure)
	}
	if len(m.asked) > 0 {
		t.Error("a model is asked about a plan that was cancelled")
	}
}
