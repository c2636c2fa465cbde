package gateway

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/bus"
	"aob.dev/writ/gateway/readapi"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

func TestPlanAndTrace(t *testing.T) {
	var w *world
	w = newWorld(t, completing(&w))
	var run runReply
	w.call("POST", "/agent/run", runBody(""), nil, &run)
	var view catalog.PlanView
	w.call("GET", "/agent/plans/"+run.PlanID, "", nil, &view)
	if view.PlanID != run.PlanID || view.Status != catalog.PlanComplete || view.Task != question {
		t.Errorf("%+v", view)
	}
	var trace map[string]any
	w.call("GET", "/agent/plans/"+run.PlanID+"/trace", "", nil, &trace)
	want := map[string]any{"plan_id": run.PlanID, "events": []any{map[string]any{"type": "plan_opened"}}}
	if d := cmp.Diff(want, trace); d != "" {
		t.Error(d)
	}
	want["events"] = append(want["events"].([]any), map[string]any{"type": "of_another_plan"})
	w.call("GET", "/agent/plans/"+run.PlanID+"/trace?session=true", "", nil, &trace)
	if d := cmp.Diff(want, trace); d != "" {
		t.Error(d)
	}
	carl := http.Header{"X-Api-Key": {appKey}, "X-User-Id": {"carl"}}
	for _, path := range []string{"/agent/plans/" + run.PlanID, "/agent/plans/" + run.PlanID + "/trace"} {
		w.refused("GET", path, "", carl, intents.NotFound, "")
	}
	w.refused("DELETE", "/agent/plans/"+run.PlanID, "", carl, intents.NotFound, "")
	w.refused("DELETE", "/agent/plans/"+run.PlanID, "", nil, intents.MalformedArgs, "")
	w.refused("GET", "/agent/plans/a%20b", "", nil, intents.NotFound, "")
}

// A list has only the plans of the user.
func TestPlanList(t *testing.T) {
	var w *world
	w = newWorld(t, completing(&w))
	var run runReply
	w.call("POST", "/agent/run", runBody(""), nil, &run)
	var page catalog.PlanListResult
	w.call("GET", "/agent/plans?limit=5&status=complete&after=c", "", nil, &page)
	if len(page.Plans) != 1 || page.Plans[0].PlanID != run.PlanID {
		t.Errorf("%+v", page)
	}
	if got, want := w.asked(readapi.Plans)[0], readapi.Plans+"?after=c&limit=5&status=complete"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	w.call("GET", "/agent/plans", "", http.Header{"X-Api-Key": {appKey}, "X-User-Id": {"carl"}}, &page)
	if len(page.Plans) != 0 {
		t.Errorf("%+v", page)
	}
}

// A client that waits for a plan learns at once that it is cancelled.
func TestCancel(t *testing.T) {
	begun, release := make(chan string, 1), make(chan struct{})
	defer close(release)
	w := newWorld(t, func(h bus.PlanDispatch, _ func(bus.FrameKind, any)) { begun <- h.PlanID; <-release })
	waited := make(chan runReply, 1)
	go func() {
		var got runReply
		w.call("POST", "/agent/run", runBody(""), nil, &got)
		waited <- got
	}()
	planID := wait(t, "the hand-out", begun)
	var got map[string]string
	// The dispatch is answered before the gateway has recorded it: until then a cancellation is
	// detected by reading the plan.
	for !w.known(planID) {
		w.call("GET", "/livez", "", nil, nil)
	}
	resp := w.call("DELETE", "/agent/plans/"+planID, "", nil, &got)
	if want := map[string]string{"plan_id": planID, "status": "failed", "reason": "stopped by ana"}; resp.StatusCode != http.StatusOK || !cmp.Equal(want, got) {
		t.Errorf("%d %v", resp.StatusCode, got)
	}
	if reply := wait(t, "the answer", waited); reply.Status != "failed" || reply.Reason != "stopped by ana" {
		t.Errorf("%+v", reply)
	}
	if plan, _ := w.plan(planID); plan.Status != catalog.PlanFailed {
		t.Errorf("plan is %s", plan.Status)
	}
}

func TestSoul(t *testing.T) {
	w := newWorld(t, nil)
	var soul catalog.Soul
	resp := w.call("PUT", "/agent/souls/acme", `{"user_id":"bob","persona":{"name":"Ada","system_prompt":"Be brief."},"policies":{"tone":"dry"}}`, nil, &soul)
	if resp.StatusCode != http.StatusOK || soul.UserID != "bob" || soul.Persona.Name != "Ada" {
		t.Errorf("%d %+v", resp.StatusCode, soul)
	}
	intent := w.submits("soul.put")[0]
	if intent.Principal().UserID != "ana" {
		t.Errorf("signed by %+v", intent.Principal())
	}
	w.refused("PUT", "/agent/souls/other", `{"persona":{"name":"Ada","system_prompt":"x"}}`, nil, intents.RBACForbidden, "/tenant_id")
	w.refused("PUT", "/agent/souls/acme", `{"persona":{"name":7}}`, nil, intents.SchemaInvalid, "/persona/name")
	w.refused("PUT", "/agent/souls/acme", `{"persona":{"name":"Ada","system_prompt":"x"},"policies":7}`, nil, intents.SchemaInvalid, "/policies")
}

func TestMemory(t *testing.T) {
	w := newWorld(t, nil)
	const want = `{"scope":"user","text":"open outlets","top_k":3}`
	for _, row := range []struct{ method, path, body string }{
		{"GET", "/agent/memory/query?tenant_id=acme&user_id=ana&query_text=open+outlets&top_k=3&scope=user", ""},
		{"GET", "/agent/memory/query", `{"tenant_id":"acme","user_id":"ana","query_text":"open outlets","top_k":3,"scope":"user"}`},
		{"POST", "/agent/memory/query", `{"query_text":"open outlets","top_k":3,"scope":"user"}`},
	} {
		var found catalog.MemoryQueryResult
		resp := w.call(row.method, row.path, row.body, nil, &found)
		if resp.StatusCode != http.StatusOK || len(found.Hits) != 1 || found.Hits[0].Text != want {
			t.Errorf("%s %s: %d %+v", row.method, row.path, resp.StatusCode, found)
		}
	}
	w.refused("GET", "/agent/memory/query?user_id=ana", "", nil, intents.SchemaInvalid, "/query_text")
	w.refused("GET", "/agent/memory/query?query_text=x&top_k=many", "", nil, intents.SchemaInvalid, "/top_k")
	w.refused("GET", "/agent/memory/query?query_text=x&top_k=99", "", nil, intents.SchemaInvalid, "/top_k")
	w.refused("GET", "/agent/memory/query?query_text=x&scope=all", "", nil, intents.SchemaInvalid, "/scope")
}

func TestHealth(t *testing.T) {
	w := newWorld(t, nil)
	for _, path := range []string{"/livez", "/readyz", "/health"} {
		if resp := w.call("GET", path, "", http.Header{"X-Api-Key": nil}, nil); resp.StatusCode != http.StatusOK {
			t.Errorf("%s: %d", path, resp.StatusCode)
		}
	}
	w.stopRouter()
	w.refused("GET", "/readyz", "", nil, intents.DispatchUnavailable, "")
	w.refused("POST", "/agent/run", runBody(""), nil, intents.DispatchUnavailable, "")
	if resp := w.call("GET", "/livez", "", nil, nil); resp.StatusCode != http.StatusOK {
		t.Errorf("/livez without a router: %d", resp.StatusCode)
	}
}

func TestRoutes(t *testing.T) {
	w := newWorld(t, nil)
	w.refused("POST", "/agent/subagents", "{}", nil, intents.NotFound, "") // only the router opens tasks
	var p map[string]any
	resp := w.call("GET", "/agent/run", "", nil, &p)
	if resp.StatusCode != http.StatusMethodNotAllowed || resp.Header.Get("Allow") != "POST" || p["status"] != 405.0 {
		t.Errorf("%d Allow %q %v", resp.StatusCode, resp.Header.Get("Allow"), p)
	}
}

// goSilent makes CORE list a plan as one without a driver.
func (w *world) goSilent(planID string, epoch int) {
	w.set(func(c *core) {
		p := c.plans[planID]
		c.silent = []bus.SilentPlan{{
			TurnRef: bus.TurnRef{Tenant: p.TenantID, UserID: p.UserID, PlanID: p.PlanID, SessionID: p.SessionID, TurnID: p.TurnID},
			Epoch:   epoch, Roles: []string{"user", "auditor"}, Client: intents.ClientOf("k1"), OpenedAt: p.CreatedAt,
		}}
	})
}

// known reports whether the gateway has recorded a turn as dispatched.
func (w *world) known(planID string) bool {
	_, ok := w.gateway.turns.find(planID)
	return ok && w.gateway.turns.handedSince(planID, 0, time.Time{})
}
