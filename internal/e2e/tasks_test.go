package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/agentic/model/offline"
	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// requestLog is a model whose requests are recorded.
type requestLog struct {
	model.Model

	mu       sync.Mutex // guards requests
	requests []model.Request
}

func (o *requestLog) Respond(ctx context.Context, req model.Request, on func(model.Event)) (*model.Response, error) {
	kept := req
	kept.Messages = slices.Clone(req.Messages)
	o.mu.Lock()
	o.requests = append(o.requests, kept)
	o.mu.Unlock()
	return o.Model.Respond(ctx, req, on)
}

// count returns the number of requests, and whether one contained a text.
func (o *requestLog) count(text string) (n int, found bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.requests), slices.ContainsFunc(o.requests, func(r model.Request) bool { return holds(r, text) })
}

// TestTasks asks one domain many ways. Every answer is compared with what this
// package computes from the same rows.
func TestTasks(t *testing.T) {
	t.Parallel()
	spy := &requestLog{Model: offline.Model{}}
	s := start(t, setup{Skills: []string{serveShop(t).url}, Model: spy})
	who := s.as("ana")
	for _, q := range questions() {
		t.Run(q.task, func(t *testing.T) {
			got := s.ask(who, q.task)
			if got.HTTP != http.StatusOK || got.Status != "complete" || got.Plan.Status != catalog.PlanComplete {
				t.Fatalf("HTTP %d, %s: %s %+v", got.HTTP, got.Status, got.Reason, got.Plan.Failure)
			}
			if planned(got.Plan) != q.skills {
				t.Errorf("skills %q, want %q", planned(got.Plan), q.skills)
			}
			sameJSON(t, q.want, got.Data)
			if got.Response == "" || got.Plan.Response != got.Response {
				t.Errorf("response %q, plan says %q", got.Response, got.Plan.Response)
			}
			checkIntents(t, got)
			if q.skills == "skills-1.order_list" {
				checkLarge(t, got)
			}
		})
	}
	if n, found := spy.count(deep); n == 0 || found {
		t.Errorf("of %d requests to the model one holds what stands deep in the large response: %v", n, found)
	}
}

// checkIntents: whatever was done was an intent, allowed and done.
func checkIntents(t *testing.T, got turn) {
	t.Helper()
	for _, o := range got.Intents {
		if o.Decision.Verdict != intents.Allow || o.Outcome == nil || o.Outcome.Status != intents.Done {
			t.Errorf("%s at %d: %+v %+v", o.Type, o.Position, o.Decision, o.Outcome)
		}
	}
	for _, typ := range []string{"plan.open", "plan.claim", "plan", "plan.close"} {
		if n := len(got.called(typ)); n != 1 {
			t.Errorf("%d intents %s", n, typ)
		}
	}
	for _, typ := range []string{"memory.written", "memory.upsert"} {
		if n := len(got.events(typ)); n != len(got.Plan.Steps) {
			t.Errorf("%d events %s for %d steps", n, typ, len(got.Plan.Steps))
		}
	}
	for _, typ := range []string{"step", "write_memory", "step.finish"} {
		if n := len(got.called(typ)); n != len(got.Plan.Steps) {
			t.Errorf("%d intents %s for %d steps", n, typ, len(got.Plan.Steps))
		}
	}
}

// TestLongAnswers: a result too long for an answer is reported as such, with its first rows; one
// too large to be inline is data by reference.
func TestLongAnswers(t *testing.T) {
	t.Parallel()
	s := start(t, setup{Skills: []string{serveShop(t).url}})
	inline := s.ask(s.as("ana"), "List the orders that are not paid")
	unpaid := where(sales, func(s sale) bool { return !s.Paid })
	sameJSON(t, rows(unpaid, wholeSale), inline.Data)
	if !strings.HasPrefix(inline.Response, fmt.Sprintf("I found %d", len(unpaid))) || !strings.Contains(inline.Response, " more.") || !strings.Contains(inline.Response, " 1000 |") {
		t.Errorf("%d rows are told as %q", len(unpaid), inline.Response)
	}

	all := s.ask(s.as("ana"), "List all orders")
	var ref bus.ArtifactData
	if err := json.Unmarshal(all.Data, &ref); err != nil || ref.Artifact == "" || ref.SizeBytes < 50_000 || len(ref.Sample) == 0 {
		t.Fatalf("data %q: %v", all.Data, err)
	}
	// It is read as long as anybody knows it, by people of this tenant.
	var whole json.RawMessage
	if status, p := s.call(s.as("ana"), http.MethodGet, ref.URL, nil, &whole); status != http.StatusOK || "cas://"+intents.Digest(append(slices.Clone(whole), '\n')) != ref.Artifact {
		t.Fatalf("HTTP %d %+v: %d bytes are not %s", status, p, len(whole), ref.Artifact)
	}
	sameJSON(t, rows(sales, wholeSale), whole)
	s.addTenant("other")
	if status, _ := s.call(s.addPerson("other", "eve", "user"), http.MethodGet, ref.URL, nil, nil); status != http.StatusNotFound {
		t.Errorf("of another tenant: HTTP %d", status)
	}
	if !strings.HasPrefix(all.Response, "There are too many to show here. These are the first ") || !strings.Contains(all.Response, " 1000 |") {
		t.Errorf("%d bytes are told as %q", ref.SizeBytes, all.Response)
	}
}

// checkLarge: the large response became a file, and a script read it in the sandbox.
func checkLarge(t *testing.T, got turn) {
	t.Helper()
	raw, err := json.Marshal(map[string]any{"orders": sales})
	if err != nil {
		t.Fatal(err)
	}
	large := got.events("large_response.detected")
	if len(large) != 1 || large[0]["size_bytes"] != float64(len(raw)) {
		t.Fatalf("large responses %v, want one of %d bytes", large, len(raw))
	}
	ran := got.events("python_script.executed")
	if len(ran) != 1 || ran[0]["script_hash"] == "" || ran[0]["input_rows"] != float64(len(sales)) {
		t.Errorf("scripts %v", ran)
	}
	if calls := got.called("exec_python"); len(calls) != 1 || !strings.Contains(string(calls[0].Args), large[0]["file_id"].(string)) {
		t.Errorf("exec_python intents %+v", calls)
	}
}

// TestNoSkillCanDoIt: the service did its work, the task could not be done.
func TestNoSkillCanDoIt(t *testing.T) {
	t.Parallel()
	shop := serveShop(t)
	s := start(t, setup{Skills: []string{shop.url}})
	for _, task := range []string{"Book me a flight to Rome", "How many outlets have a parking lot?"} {
		got := s.ask(s.as("ana"), task)
		if got.HTTP != http.StatusOK || got.Status != "failed" || got.Plan.Status != catalog.PlanFailed {
			t.Errorf("%s: HTTP %d, %s, plan %s", task, got.HTTP, got.Status, got.Plan.Status)
		}
		for _, f := range []*catalog.Failure{got.Failure, got.Plan.Failure} {
			if f == nil || !strings.HasPrefix(f.Reason, "infeasible: ") || len(f.CompletedSteps) != 0 || f.LastFailure != nil {
				t.Errorf("%s: failure %+v", task, f)
			}
		}
		if !strings.HasPrefix(got.Reason, "I could not") || strings.Contains(got.Reason, "infeasible") || strings.ContainsAny(got.Reason, "{}") {
			t.Errorf("%s: not plain language: %q", task, got.Reason)
		}
		if len(got.called("skill.call")) != 0 || len(got.called("plan")) != 0 {
			t.Errorf("%s: something was called", task)
		}
	}
	for _, name := range []string{"outlet_list", "order_list", "orders_for_outlet"} {
		if n := shop.count(name); n != 0 {
			t.Errorf("%s was called %d times", name, n)
		}
	}
}
