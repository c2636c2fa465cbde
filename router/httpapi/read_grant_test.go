package httpapi_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
)

// TestGrantsOfIntentsReadNothing: a grant that travels with an intent, of a turn or of other work,
// allows no read, whatever its roles, not even of its own subject; and one for reading allows no
// intent.
func TestGrantsOfIntentsReadNothing(t *testing.T) {
	e := open(t)
	e.Pin("pay", catalog.Once)
	e.Approval(`{"once":true}`, "zoe")
	task := e.Begun("p1", "pay").Started(1)
	held := e.Want(task.Call("pay", `{}`), intents.ApprovalRequired).IntentID
	grant := func(change func(*intents.Grant)) string {
		return e.Grant("ana", "default", routertest.Intent{Roles: []string{"user", "auditor", "approver"}, Grant: func(g *intents.Grant) { g.Act.Client = "token"; change(g) }})
	}
	var signed struct {
		Actor intents.Actor `json:"actor"`
	}
	e.Must(json.Unmarshal(e.Sign(find(e)), &signed))
	bearers := []string{signed.Actor.Grant}
	for _, work := range []string{"", "plan:" + routertest.PlanID("p1"), "plan:", "run:" + routertest.PlanID("p1"), "schedule:s", "read"} {
		bearers = append(bearers, grant(func(g *intents.Grant) { g.For = work }))
	}
	paths := []string{"/v1/intents", "/v1/intents/" + held, "/v1/intents/" + task.Digest + "/receipt", "/v1/approvals", "/v1/approvals/" + held, "/v1/policy"}
	for _, path := range paths {
		for _, token := range bearers {
			refused(t, e.do(http.MethodGet, path, nil, "Authorization", "Bearer "+token), intents.GrantInvalid)
		}
		if w := e.do(http.MethodGet, path, nil, "Authorization", "Bearer "+grant(forReading)); w.Code != http.StatusOK {
			t.Errorf("%s with a grant for reading: %d %s", path, w.Code, w.Body)
		}
	}
	for _, change := range []func(*intents.Grant){
		func(g *intents.Grant) { g.Use, g.Expires = intents.UseRead, g.IssuedAt+301 },
		func(g *intents.Grant) { g.Use = "reading" },
	} {
		refused(t, e.do(http.MethodGet, "/v1/intents", nil, "Authorization", "Bearer "+grant(change)), intents.GrantInvalid)
	}
	o := find(e)
	o.Grant = forReading
	if a := e.Do(o); a.Code != intents.GrantInvalid || a.Reason != "a grant for reading serves no intent" {
		t.Errorf("%+v", a)
	}
}
