package gateway

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/bus"
	"aob.dev/writ/gateway/readapi"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/problem"
)

const question = "Which outlets are open?"

func runBody(stream string) string {
	return `{"tenant_id":"acme","user_id":"ana","session_id":"s1","message":"` + question + `"` + stream + `}`
}

// completing answers at once.
func completing(w **world) script {
	return func(h bus.PlanDispatch, say func(bus.FrameKind, any)) {
		say(bus.FrameStatus, bus.StatusData{State: "planning"})
		say(bus.FrameToken, bus.ContentData{Text: "Two "})
		(*w).change(h.PlanID, func(p *catalog.PlanView) { p.Status, p.Response = catalog.PlanComplete, "Two outlets." })
		say(bus.FrameAnswer, bus.AnswerData{Response: "Two outlets.", Data: json.RawMessage(`[{"id":1},{"id":2}]`)})
		say(bus.FrameDone, bus.DoneData{PlanID: h.PlanID, Status: "complete"})
	}
}

func TestRun(t *testing.T) {
	var w *world
	w = newWorld(t, completing(&w))
	var got runReply
	resp := w.call("POST", "/agent/run", runBody(""), http.Header{"Traceparent": {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}}, &got)
	if resp.StatusCode != http.StatusOK || resp.Header.Get("X-Plan-Id") != got.PlanID {
		t.Errorf("%d, X-Plan-Id %q", resp.StatusCode, resp.Header.Get("X-Plan-Id"))
	}
	open := w.submits("plan.open")[0]
	want := runReply{
		PlanID: open.Context().PlanID, SessionID: "s1", TurnID: open.Context().TurnID, TraceID: "0af7651916cd43dd8448eb211c80319c",
		Status: "complete", Response: "Two outlets.", Data: json.RawMessage(`[{"id":1},{"id":2}]`), IntentID: open.ID(), Receipt: "receipt of plan.open",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if open.TraceID() != want.TraceID || open.Principal().Session != "s1" {
		t.Errorf("plan.open: trace %s, principal %+v", open.TraceID(), open.Principal())
	}
	for _, secret := range []string{anaKey, question, "Two outlets", open.GrantToken()} {
		if strings.Contains(w.log.String(), secret) {
			t.Errorf("the log holds %q", secret)
		}
	}
}

// Each request is a turn of its own, in a new session unless it names one.
func TestRunFreshIDs(t *testing.T) {
	var w *world
	w = newWorld(t, completing(&w))
	var a, b runReply
	w.call("POST", "/agent/run", `{"message":"again"}`, nil, &a)
	w.call("POST", "/agent/run", `{"message":"again"}`, nil, &b)
	if a.PlanID == b.PlanID || a.TurnID == b.TurnID || a.SessionID == b.SessionID || a.SessionID == "" {
		t.Errorf("%+v and %+v share an id", a, b)
	}
}

func TestRunFails(t *testing.T) {
	failure := json.RawMessage(`{"reason":"infeasible: no skill counts stars","completed_steps":[]}`)
	w := newWorld(t, func(h bus.PlanDispatch, say func(bus.FrameKind, any)) {
		say(bus.FrameError, bus.ErrorData{Reason: "infeasible: no skill counts stars", Failure: failure})
		say(bus.FrameDone, bus.DoneData{PlanID: h.PlanID, Status: "failed"})
	})
	var got runReply
	resp := w.call("POST", "/agent/run", runBody(""), nil, &got)
	if resp.StatusCode != http.StatusOK || got.Status != "failed" || got.Reason != "infeasible: no skill counts stars" || string(got.Failure) != string(failure) {
		t.Errorf("%d %+v", resp.StatusCode, got)
	}
}

func TestRunHeld(t *testing.T) {
	approval := bus.Approval{IntentID: "sha256:1", Type: "skill.call", Step: 2, Approvers: []string{"approver"}}
	w := newWorld(t, func(h bus.PlanDispatch, say func(bus.FrameKind, any)) {
		say(bus.FramePendingApproval, bus.PendingApprovalData{PlanID: h.PlanID, Text: "One waits.", Approval: approval})
	})
	var got runReply
	resp := w.call("POST", "/agent/run", runBody(""), nil, &got)
	if resp.StatusCode != http.StatusAccepted || got.Status != "held" || got.Response != "One waits." || resp.Header.Get("Location") != "/agent/plans/"+got.PlanID {
		t.Errorf("%d %q %+v", resp.StatusCode, resp.Header.Get("Location"), got)
	}
	if d := cmp.Diff(&approval, got.Approval); d != "" {
		t.Error(d)
	}
}

// A policy may require approval of the opening of a plan: then no manager receives it yet.
func TestRunOpeningHeld(t *testing.T) {
	w := newWorld(t, func(bus.PlanDispatch, func(bus.FrameKind, any)) { t.Error("handed out") })
	w.set(func(c *core) {
		c.refuse["plan.open"] = &intents.Answer{
			IntentID: "sha256:2", Code: intents.ApprovalRequired, Reason: "at night",
			Decision: &intents.Decision{Verdict: intents.Hold, Code: intents.ApprovalRequired, Approvers: []string{"bob"}, PolicyIDs: []string{"acme.night"}},
		}
	})
	var got runReply
	resp := w.call("POST", "/agent/run", runBody(`,"stream":true`), nil, &got)
	want := &bus.Approval{IntentID: "sha256:2", Type: "plan.open", Approvers: []string{"bob"}, PolicyIDs: []string{"acme.night"}, Reason: "at night"}
	if d := cmp.Diff(want, got.Approval); d != "" || resp.StatusCode != http.StatusAccepted {
		t.Errorf("%d %s", resp.StatusCode, d)
	}
}

// A turn that takes longer than a request may is answered 202 and continues.
func TestRunTakesLong(t *testing.T) {
	release := make(chan struct{})
	w := newWorld(t, func(bus.PlanDispatch, func(bus.FrameKind, any)) { <-release }, func(_ *Config, p *pace) { p.wait = 20 * time.Millisecond })
	var got runReply
	resp := w.call("POST", "/agent/run", runBody(""), nil, &got)
	if resp.StatusCode != http.StatusAccepted || got.Status != "executing" || got.Approval != nil {
		t.Errorf("%d %+v", resp.StatusCode, got)
	}
	if len(w.submits("cancel")) != 0 {
		t.Error("the plan was cancelled")
	}
	close(release)
}

// Frames may be lost; the plan has the result.
func TestRunWithoutFrames(t *testing.T) {
	for name, say := range map[string]bool{"nothing comes": false, "only done comes": true} {
		t.Run(name, func(t *testing.T) {
			var w *world
			w = newWorld(t, func(h bus.PlanDispatch, frame func(bus.FrameKind, any)) {
				w.change(h.PlanID, func(p *catalog.PlanView) { p.Status, p.Response = catalog.PlanComplete, "Two outlets." })
				if say {
					frame(bus.FrameDone, bus.DoneData{PlanID: h.PlanID, Status: "complete"})
				}
			}, func(_ *Config, p *pace) { p.quiet = 20 * time.Millisecond })
			var got runReply
			w.call("POST", "/agent/run", runBody(""), nil, &got)
			if got.Status != "complete" || got.Response != "Two outlets." {
				t.Errorf("%+v", got)
			}
		})
	}
}

// A plan that has ended and cannot be read now is followed later. The request is not refused: one that
// is sent again would begin another plan.
func TestRunUnreadable(t *testing.T) {
	var w *world
	w = newWorld(t, func(h bus.PlanDispatch, frame func(bus.FrameKind, any)) {
		w.change(h.PlanID, func(p *catalog.PlanView) { p.Status, p.Response = catalog.PlanComplete, "Two outlets." })
		w.core.mu.Lock()
		w.core.refuse[readapi.Plans+"/"+h.PlanID] = &intents.Answer{Code: intents.Overloaded, Reason: "the documents are behind the record"}
		w.core.mu.Unlock()
		frame(bus.FrameDone, bus.DoneData{PlanID: h.PlanID, Status: "complete"})
	})
	var got runReply
	resp := w.call("POST", "/agent/run", runBody(""), nil, &got)
	if resp.StatusCode != http.StatusAccepted || got.Status != statusExecuting || got.PlanID == "" {
		t.Errorf("%d %+v", resp.StatusCode, got)
	}
}

func TestRunRefused(t *testing.T) {
	w := newWorld(t, func(bus.PlanDispatch, func(bus.FrameKind, any)) { t.Error("handed out") })
	for _, row := range []struct {
		name, body string
		code       intents.Code
		pointer    string
	}{
		{"no body", "", intents.SchemaInvalid, ""},
		{"not JSON", "{", intents.SchemaInvalid, ""},
		{"not an object", `["x"]`, intents.SchemaInvalid, ""},
		{"no message", `{"stream":false}`, intents.SchemaInvalid, "/message"},
		{"message too long", `{"message":"` + strings.Repeat("x", 16<<10+1) + `"}`, intents.SchemaInvalid, "/message"},
		{"message of another type", `{"message":7}`, intents.SchemaInvalid, "/message"},
		{"tenant of another type", `{"tenant_id":7,"message":"x"}`, intents.SchemaInvalid, "/tenant_id"},
		{"unknown member", `{"message":"x","roles":["admin"]}`, intents.SchemaInvalid, "/roles"},
		{"member twice", `{"message":"x","user_id":"ana","user_id":"bob"}`, intents.SchemaInvalid, "/user_id"},
		{"body too large", `{"message":"` + strings.Repeat("x", 1<<20) + `"}`, intents.PayloadTooLarge, ""},
	} {
		t.Run(row.name, func(*testing.T) {
			w.refused("POST", "/agent/run", row.body, nil, row.code, row.pointer)
		})
	}

	t.Run("plan.open denied", func(t *testing.T) {
		w.set(func(c *core) {
			c.refuse["plan.open"] = &intents.Answer{
				IntentID: "sha256:3", Code: intents.PolicyDenied, Pointer: "/intent/args/task", Reason: "not on Sundays",
				Decision: &intents.Decision{Verdict: intents.Deny, PolicyIDs: []string{"acme.sunday"}},
			}
		})
		p := w.refused("POST", "/agent/run", runBody(""), nil, intents.PolicyDenied, "/message")
		if p.IntentID != "sha256:3" || p.Detail != "not on Sundays" || !cmp.Equal(p.PolicyIDs, []string{"acme.sunday"}) {
			t.Errorf("%+v", p)
		}
	})
}

// Without a manager the answer is 503, and nothing continues later.
func TestRunWithoutManager(t *testing.T) {
	w := newWorld(t, nil)
	w.refused("POST", "/agent/run", runBody(""), nil, intents.DispatchUnavailable, "")
	open, cancels := w.submits("plan.open"), w.submits("cancel")
	if len(open) != 1 || len(cancels) != 1 || open[0].Context().PlanID != cancels[0].Context().PlanID {
		t.Errorf("%d opened, %d cancelled", len(open), len(cancels))
	}
}

// A manager that accepts no more refuses with its own code.
func TestRunManagerBusy(t *testing.T) {
	w := newWorld(t, nil)
	w.serve("manager", map[string]bus.Handler{bus.Agent("manager"): func(context.Context, []byte) []byte {
		return marshal(t, bus.PlanDispatchReply{Code: string(intents.Overloaded), Reason: "64 turns"})
	}})
	p := w.refused("POST", "/agent/run", runBody(""), nil, intents.Overloaded, "")
	if p.Detail != "64 turns" || len(w.submits("cancel")) != 1 {
		t.Errorf("%+v", p)
	}
}

// breaking is a connection whose requests panic.
type breaking struct{ bus.Conn }

func (breaking) Request(context.Context, string, []byte) ([]byte, error) { panic("secret of a user") }

// A panic is neither revealed to the client nor logged with its content.
func TestPanicRevealsNothing(t *testing.T) {
	w := newWorld(t, nil, func(c *Config, _ *pace) { c.Bus = breaking{c.Bus} })
	p := w.refused("POST", "/agent/run", runBody(""), nil, intents.Internal, "")
	if d := cmp.Diff(problem.New(intents.Internal, "", "").Detail, p.Detail); d != "" {
		t.Error(d)
	}
	if log := w.log.String(); strings.Contains(log, "secret of a user") || !strings.Contains(log, "panic") {
		t.Errorf("log: %s", log)
	}
}
