package httpapi_test

import (
	"net/http"
	"testing"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
)

// held makes a call that needs ben's approval.
func held(t *testing.T, e *entrance) (*intents.Answer, routertest.Intent) {
	t.Helper()
	e.Want(e.Admin("admin.put", catalog.AdminPut{Tenant: "default", APIKey: &catalog.APIKey{
		ID: "k1", Hash: intents.Digest([]byte("k1")), UserID: "ana", MaxRoles: []string{"user", "approver", "auditor"}, MayAssertUser: true,
	}}), intents.OK)
	e.Want(e.Admin("admin.put", catalog.AdminPut{Tenant: "default", User: &catalog.User{UserID: "ben", Roles: []string{"approver"}}}), intents.OK)
	e.Pin("pay", catalog.Once)
	e.Data("approval", `{"once":true}`)
	call := e.Begun("p1", "pay").Started(1).CallIntent("pay", `{"n":1}`)
	return decoded[*intents.Answer](t, e.post(e.Sign(call))), call
}

// A held intent is answered 202 with the URL of its approval, the second time too; permitted
// readers see there that it is pending, and how it ends.
func TestApprovals(t *testing.T) {
	e := open(t)
	a, call := held(t, e)
	again := e.post(e.Sign(call))
	if dup := decoded[intents.Answer](t, again); again.Code != http.StatusAccepted || a.Code != intents.ApprovalRequired ||
		dup.Approval != a.Approval || a.Approval != "/v1/approvals/"+a.IntentID || again.Header().Get("Location") != "/v1/intents/"+a.IntentID {
		t.Errorf("%d %+v", again.Code, dup)
	}
	ben, ana := e.bearer("ben", "default", "approver"), e.bearer("ana", "default", "user")
	for user, headers := range map[string][]string{"ben": ben, "ana": ana} {
		page := decoded[bus.ApprovalsReply](t, e.do(http.MethodGet, "/v1/approvals?limit=5&type=skill.call", nil, headers...))
		if len(page.Approvals) != 1 || page.Approvals[0].IntentID != a.IntentID || page.Approvals[0].MayDecide != (user == "ben") || page.Approvals[0].Mine != (user == "ana") {
			t.Errorf("%s: %+v", user, page)
		}
		if h := decoded[bus.PendingApproval](t, e.do(http.MethodGet, a.Approval, nil, headers...)); h.UserID != "ana" || h.Deadline == "" {
			t.Errorf("%s: %+v", user, h)
		}
	}
	emil := e.bearer("emil", "default", "user")
	if page := decoded[bus.ApprovalsReply](t, e.do(http.MethodGet, "/v1/approvals", nil, emil...)); len(page.Approvals) != 0 {
		t.Errorf("a stranger: %+v", page)
	}
	refused(t, e.do(http.MethodGet, a.Approval, nil, emil...), intents.NotFound)
	refused(t, e.do(http.MethodGet, "/v1/approvals/"+intents.Digest(nil), nil, ben...), intents.NotFound)
	refused(t, e.do(http.MethodGet, "/v1/approvals", nil), intents.Unauthorized)
	refused(t, e.do(http.MethodGet, "/v1/approvals?after=x", nil, ben...), intents.SchemaInvalid)

	e.Want(e.Do(routertest.Intent{By: e.Gateway, Type: "hitl.approve", User: "ben", Roles: []string{"approver"}, Args: catalog.Approve{
		IntentID: a.IntentID, Decision: catalog.DecisionReject, Reason: "no",
	}, Grant: func(g *intents.Grant) { g.Act.Client = "token" }}), intents.OK)
	type ended struct {
		State string       `json:"state"`
		Code  intents.Code `json:"code"`
	}
	audrey := e.bearer("audrey", "default", "auditor")
	refused(t, e.do(http.MethodGet, a.Approval, nil, audrey...), intents.AuditRequired)
	for _, headers := range [][]string{ben, ana, append(audrey, e.audited("audrey", catalog.SubjectPlan(routertest.PlanID("p1")))...)} {
		if got := decoded[ended](t, e.do(http.MethodGet, a.Approval, nil, headers...)); got != (ended{"ended", intents.ApprovalRejected}) {
			t.Errorf("%+v", got)
		}
	}
	refused(t, e.do(http.MethodGet, a.Approval, nil, emil...), intents.NotFound)
}
