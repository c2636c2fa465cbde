package gateway

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"aob.dev/writ/bus"
	"aob.dev/writ/bus/natsserver"
	"aob.dev/writ/gateway/readapi"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// engine records the runs that it receives.
func engine(handed chan bus.PlanDispatch) script {
	return func(h bus.PlanDispatch, _ func(bus.FrameKind, any)) { handed <- h }
}

// A run is started by one intent, named by the request's key, and dispatched to the workflow
// engine, never to a manager.
func TestStartRun(t *testing.T) {
	handed := make(chan bus.PlanDispatch, 9)
	w := newWorld(t, func(h bus.PlanDispatch, _ func(bus.FrameKind, any)) { t.Errorf("a manager was given %+v", h) })
	w.startDriver(natsserver.Workflow, engine(handed))
	var run catalog.PlanView
	resp := w.call(http.MethodPost, "/v1/runs", `{"workflow_id":"intake","inputs":{"n":1},"priority":"high"}`, nil, &run)
	if resp.StatusCode != http.StatusCreated || run.Run == nil || run.Run.WorkflowID != "intake" || resp.Header.Get("Location") != "/v1/runs/"+run.PlanID {
		t.Fatalf("%d %+v", resp.StatusCode, run)
	}
	if h := wait(t, "the hand-out", handed); h.PlanID != run.PlanID || h.Epoch != 0 {
		t.Errorf("%+v", h)
	}
	const named = `{"workflow_id":"intake","inputs":{"named":true}}`
	for range 2 {
		w.call(http.MethodPost, "/v1/runs", named, http.Header{"Idempotency-Key": {"k"}}, nil)
	}
	envelopes := w.submits("workflow.start")
	if len(envelopes) != 3 {
		t.Fatalf("%d intents", len(envelopes))
	}
	a, b := envelopes[1], envelopes[2]
	if a.Fingerprint() != b.Fingerprint() || a.Constraints().IdempotencyKey != b.Constraints().IdempotencyKey || a.Fingerprint() == envelopes[0].Fingerprint() {
		t.Error("a request that is sent again is another intent")
	}
	w.refused(http.MethodPost, "/v1/runs", `{"workflow_id":7}`, nil, intents.SchemaInvalid, "/workflow_id")
	w.refused(http.MethodPost, "/v1/runs", `{"workflow":"intake"}`, nil, intents.SchemaInvalid, "/workflow")

	w.call(http.MethodGet, "/v1/runs?workflow_id=intake&status=pending", "", nil, nil)
	if l := w.asked(readapi.Plans); len(l) != 1 || l[0] != readapi.Plans+"?runs=true&status=pending&workflow_id=intake" {
		t.Errorf("listed by %s", l)
	}
	var got catalog.PlanView
	if w.call(http.MethodGet, "/v1/runs/"+run.PlanID, "", nil, &got); got.PlanID != run.PlanID {
		t.Errorf("%+v", got)
	}
	if resp := w.call(http.MethodDelete, "/v1/runs/"+run.PlanID, "", nil, nil); resp.StatusCode != http.StatusOK {
		t.Errorf("cancel: %d", resp.StatusCode)
	}
	w.change(run.PlanID, func(p *catalog.PlanView) { p.Run = nil })
	w.refused(http.MethodGet, "/v1/runs/"+run.PlanID, "", nil, intents.NotFound, "")
}

// A run without a driver is dispatched again for the days of its definition, under a grant of the
// roles that its user still has; this includes an operator, who has no API key.
func TestSilentRun(t *testing.T) {
	for name, days := range map[string]int{"a day": 0, "three": 3} {
		t.Run(name, func(t *testing.T) {
			handed := make(chan bus.PlanDispatch, 9)
			w := newWorld(t, nil)
			w.startDriver(natsserver.Workflow, engine(handed))
			w.set(func(c *core) {
				c.users["operator"] = bus.UserReply{Roles: []string{"user"}}
				c.plans["plan_1"] = &catalog.PlanView{PlanID: "plan_1", TenantID: "acme", UserID: "operator", Status: catalog.PlanExecuting, CreatedAt: c.now()}
				c.silent = []bus.SilentPlan{{TurnRef: bus.TurnRef{Tenant: "acme", UserID: "operator", PlanID: "plan_1", SessionID: "s1", TurnID: "turn_1"}, Epoch: 1, Roles: []string{"user", "admin"}, OpenedAt: c.now(), Run: true, Days: days}}
			})
			for range max(1, days) {
				w.gateway.resumeSilent(t.Context())
				h := wait(t, "the hand-out", handed)
				g, err := intents.OpenGrant(h.Grant, origin, w.keys(), w.clock.Now())
				if err != nil || g.For != "plan:plan_1" || g.Act.Client != "operator" || !slices.Equal(g.Roles, []string{"user"}) {
					t.Errorf("%+v %v", g, err)
				}
				w.clock.advance(23 * time.Hour)
				w.gateway.renewGrants(t.Context())
				if fresh := wait(t, "the grant", w.fresh); fresh.Driver != h.Driver {
					t.Errorf("%+v", fresh)
				}
			}
			w.clock.advance(time.Duration(max(1, days))*time.Hour + time.Second)
			w.gateway.resumeSilent(t.Context())
			if len(handed) > 0 {
				t.Error("handed out when its time was over")
			}
		})
	}
}
