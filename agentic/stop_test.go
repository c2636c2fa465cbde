package agentic

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/bus"
	"aob.dev/writ/bus/natsserver"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state/agents"
)

// TestStopEndsRequest: when a plan is cancelled, the request to the model of the planner, of a task or
// of the composer is cancelled at once. The plan is not closed again, no model is asked about it, and
// what the requests have used is reported.
func TestStopEndsRequest(t *testing.T) {
	t.Parallel()
	for name, replies := range map[string]map[string][]any{
		"planner":  {},
		"task":     {agents.Planner: {pick, onePlan}},
		"composer": {agents.Planner: {pick, onePlan}, agents.Executor: {callIt, finishIt}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked, cancelled := make(chan struct{}, 10), make(chan struct{}, 10)
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"I think \"}}]}\n\n")
				_ = http.NewResponseController(w).Flush()
				asked <- struct{}{}
				<-r.Context().Done()
				cancelled <- struct{}{}
			}))
			t.Cleanup(srv.Close)
			remote, err := model.NewOpenAI(model.OpenAIConfig{BaseURL: srv.URL, Model: "m"})
			if err != nil {
				t.Fatal(err)
			}
			c := newCore(t)
			managed(c)
			c.on("usage.report", done(catalog.Ack{Accepted: true}))
			layer(c, &then{says(replies), remote}, allRoles...)
			dispatchTurn(c)
			wait := func(what string, on <-chan struct{}, limit time.Duration) {
				t.Helper()
				select {
				case <-on:
				case <-time.After(limit):
					t.Fatal(what)
				}
			}
			wait("the model is not asked", asked, patience)
			before := len(c.allPlaced())
			var found bus.FindRunReply
			raw, err := c.connect(natsserver.Gateway).Request(t.Context(), bus.FindRun("manager"), marshal(bus.FindRunRequest{PlanID: theTurn.PlanID, StoppedBy: "ana"}))
			if err != nil || json.Unmarshal(raw, &found) != nil || found.Driver != "d1" {
				t.Fatalf("%s, %v", raw, err)
			}
			wait("the request goes on", cancelled, patience)
			if name != "task" { // the end of the plan counts the usage of its tasks
				for until := time.Now().Add(patience); len(c.ofType("usage.report")) == 0 && time.Now().Before(until); time.Sleep(time.Millisecond) {
				}
				var told catalog.UsageReport
				if all := c.ofType("usage.report"); len(all) != 1 || json.Unmarshal(all[0].Args, &told) != nil || catalog.Tokens(told.Usage) == 0 {
					t.Errorf("%+v", all)
				}
			}
			if name == "task" {
				before++ // step.finish is not there either
			}
			if all := c.allPlaced(); len(all) > before+1 || len(c.ofType("plan.close")) > 0 || len(asked) > 0 {
				t.Errorf("after the stop: %v", types(all[before:]))
			}
		})
	}
}

// TestHaltEndsRequest: when an operator stops a tenant, the request to the model is cancelled at once,
// and the plan is closed with the reason, by no model.
func TestHaltEndsRequest(t *testing.T) {
	t.Parallel()
	asked, cancelled := make(chan struct{}, 10), make(chan struct{}, 10)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		_ = http.NewResponseController(w).Flush()
		asked <- struct{}{}
		<-r.Context().Done()
		cancelled <- struct{}{}
	}))
	t.Cleanup(srv.Close)
	remote, err := model.NewOpenAI(model.OpenAIConfig{BaseURL: srv.URL, Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	c := newCore(t)
	managed(c)
	layer(c, &then{says(nil), remote}, allRoles...)
	dispatchTurn(c)
	<-asked
	const why = "olga stopped everything at 2026-11-20T10:00:00.000Z: a leak"
	began := time.Now()
	go func() { // nobody replies
		_, _ = c.connect(natsserver.Gateway).Request(t.Context(), bus.FindRun("manager"), marshal(bus.FindRunRequest{Plans: []string{"plan_other", theTurn.PlanID}, Why: why}))
	}()
	<-cancelled
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("the request went on for %s", took)
	}
	frames := shown(c)
	said := dataOf[bus.ErrorData](t, frames[len(frames)-2]).Reason
	if end := closed(c); end.Status != string(catalog.PlanFailed) || end.Failure == nil || end.Failure.Reason != why || !strings.Contains(said, why) || len(asked) > 0 {
		t.Errorf("%+v, %q, %d further requests", end, said, len(asked))
	}
}

// then is a script whose agents without a further reply are another model's.
type then struct {
	*script
	other model.Model
}

func (m *then) Respond(ctx context.Context, req model.Request, on func(model.Event)) (*model.Response, error) {
	m.mu.Lock()
	over := m.next[req.Agent] >= len(m.replies[req.Agent])
	m.mu.Unlock()
	if over {
		return m.other.Respond(ctx, req, on)
	}
	return m.script.Respond(ctx, req, on)
}
