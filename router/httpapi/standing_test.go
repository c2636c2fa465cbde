package httpapi_test

import (
	"net/http"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/bus"
	"aob.dev/writ/router/routertest"
)

// A standing grant is good for its plan alone: its bearer is shown what that plan
// did, and nothing else is there, whatever its roles.
func TestStandingGrantReadsItsPlan(t *testing.T) {
	e := open(t)
	e.Pin("pay", catalog.Once)
	e.Approval(`{"once":true}`, "zoe")
	held, opened := map[string]string{}, map[string]string{}
	for _, plan := range []string{"p1", "p2"} {
		task := e.Begun(plan, "pay").Started(1)
		a := e.Want(task.Call("pay", `{}`), intents.ApprovalRequired)
		held[plan], opened[plan] = a.IntentID, task.Digest
	}
	loose := e.OK(find(e)).IntentID // of no plan
	standing := func(work string, roles ...string) (token string, headers []string) {
		token = e.Grant("ana", "default", routertest.Order{Roles: roles, Grant: func(g *intents.Grant) { g.For, g.Act.Client = work, "token" }})
		return token, []string{"Authorization", "Bearer " + token}
	}
	get := func(path string, headers []string) int {
		return e.do(http.MethodGet, path, nil, headers...).Code
	}
	for _, roles := range [][]string{{"user"}, {"user", "auditor", "approver"}} {
		token, own := standing("plan:"+routertest.PlanID("p1"), roles...)
		for _, path := range []string{"/v1/intents/" + held["p1"], "/v1/intents/" + opened["p1"] + "/receipt", "/v1/approvals/" + held["p1"]} {
			if got := get(path, own); got != http.StatusOK {
				t.Errorf("%v: %s of its plan: %d", roles, path, got)
			}
		}
		for _, id := range []string{held["p2"], opened["p2"], loose} {
			for _, path := range []string{"/v1/intents/" + id, "/v1/intents/" + id + "/receipt", "/v1/approvals/" + id} {
				refused(t, e.do(http.MethodGet, path, nil, own...), intents.NotFound)
			}
		}
		for query, want := range map[string]int{"": 5, "?plan_id=" + routertest.PlanID("p1"): 5, "?plan_id=" + routertest.PlanID("p2"): 0, "?type=skill.find": 0, "?type=plan.open": 1} {
			if got := decoded[listed](t, e.do(http.MethodGet, "/v1/intents"+query, nil, own...)); len(got.Orders) != want {
				t.Errorf("%v: a list %q of %d orders, want %d", roles, query, len(got.Orders), want)
			}
		}
		if page := decoded[bus.ApprovalsReply](t, e.do(http.MethodGet, "/v1/approvals", nil, own...)); len(page.Approvals) != 1 || page.Approvals[0].PlanID != routertest.PlanID("p1") {
			t.Errorf("%v: approvals %+v", roles, page.Approvals)
		}
		refused(t, e.do(http.MethodGet, "/v1/policy", nil, own...), intents.GrantInvalid)
		if g, err := e.Router.Reader(token); err != nil || !g.Standing() {
			t.Errorf("%+v: %v", g, err)
		}
	}
	for _, work := range []string{"plan:", "plan:" + routertest.PlanID("p3"), "run:" + routertest.PlanID("p1"), "schedule:" + routertest.PlanID("p1"), routertest.PlanID("p1")} {
		_, other := standing(work, "user", "auditor")
		if got := decoded[listed](t, e.do(http.MethodGet, "/v1/intents", nil, other...)); len(got.Orders) != 0 {
			t.Errorf("for %q: %d orders", work, len(got.Orders))
		}
		refused(t, e.do(http.MethodGet, "/v1/intents/"+held["p1"], nil, other...), intents.NotFound)
		if page := decoded[bus.ApprovalsReply](t, e.do(http.MethodGet, "/v1/approvals", nil, other...)); len(page.Approvals) != 0 {
			t.Errorf("for %q: %d approvals", work, len(page.Approvals))
		}
	}
	_, turn := standing("", "user")
	if got := get("/v1/intents/"+held["p2"], turn); got != http.StatusOK {
		t.Errorf("a turn's grant reads its user's orders: %d", got)
	}
}
