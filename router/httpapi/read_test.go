package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/router/routertest"
)

// bearer is a grant for reading.
func (e *entrance) bearer(user, tenant string, roles ...string) []string {
	return []string{"Authorization", "Bearer " + e.Grant(user, tenant, routertest.Order{Roles: roles})}
}

// A read carries a grant and sees its tenant's orders: its own, with audit:read all.
func TestGet(t *testing.T) {
	e := open(t)
	e.Want(e.Admin("admin.put", catalog.AdminPut{New: &catalog.Tenant{ID: "acme"}}), intents.OK)
	mine := decoded[intents.Answer](t, e.post(e.Seal(find(e))))
	path := "/v1/intents/" + mine.IntentID
	got := decoded[intents.Answer](t, e.do(http.MethodGet, path, nil, e.bearer("ana", "default", "user")...))
	if got.Code != intents.OK || got.Receipt != mine.Receipt || got.Replayed || got.Outcome == nil || *got.Position != *mine.Position {
		t.Errorf("%+v", got)
	}
	if w := e.do(http.MethodGet, path, nil, e.bearer("audrey", "default", "auditor")...); w.Code != http.StatusOK {
		t.Errorf("an auditor gets %d", w.Code)
	}
	for name, headers := range map[string][]string{
		"another user": e.bearer("bob", "default", "user"), "another tenant": e.bearer("ana", "acme", "user"), "another tenant's auditor": e.bearer("ana", "acme", "auditor"),
	} {
		if p := refused(t, e.do(http.MethodGet, path, nil, headers...), intents.NotFound); strings.Contains(p.Detail, "sha256") {
			t.Errorf("%s: %s", name, p.Detail)
		}
	}
	refused(t, e.do(http.MethodGet, "/v1/intents/"+intents.Digest([]byte("none")), nil, e.bearer("ana", "default", "user")...), intents.NotFound)
	refused(t, e.do(http.MethodGet, path, nil), intents.Unauthorized)
	refused(t, e.do(http.MethodGet, path, nil, "Authorization", "Bearer a.b.c"), intents.GrantInvalid)
	old := e.bearer("ana", "default", "user")
	e.Want(e.Admin("grant.revoke", catalog.GrantRevoke{Tenant: "default", Sub: "ana", Before: "2026-11-20T10:00:01Z"}), intents.OK)
	refused(t, e.do(http.MethodGet, path, nil, old...), intents.GrantInvalid)
}

// Refused and held orders are found too, and a read sees what was durable before it.
func TestGetRefused(t *testing.T) {
	e := open(t)
	for range 20 {
		o := find(e)
		o.Roles = []string{"auditor"}
		raw, id := e.SealID(o)
		refused(t, e.post(raw), intents.RBACForbidden)
		a := decoded[intents.Answer](t, e.do(http.MethodGet, "/v1/intents/"+id, nil, e.bearer("ana", "default", "user")...))
		if a.Code != intents.RBACForbidden || a.Outcome != nil || a.Receipt != "" || a.Decision.Verdict != intents.Deny {
			t.Fatalf("%+v", a)
		}
	}
}

// The receipt alone, for whoever may read the order; a refused one has none.
func TestReceipt(t *testing.T) {
	e := open(t)
	mine := decoded[intents.Answer](t, e.post(e.Seal(find(e))))
	got := decoded[map[string]any](t, e.do(http.MethodGet, "/v1/intents/"+mine.IntentID+"/receipt", nil, e.bearer("ana", "default", "user")...))
	if got["receipt"] != mine.Receipt || got["intent_id"] != mine.IntentID {
		t.Errorf("%v", got)
	}
	refused(t, e.do(http.MethodGet, "/v1/intents/"+mine.IntentID+"/receipt", nil, e.bearer("bob", "default", "user")...), intents.NotFound)
	o := find(e)
	o.Roles = []string{"auditor"}
	raw, id := e.SealID(o)
	refused(t, e.post(raw), intents.RBACForbidden)
	refused(t, e.do(http.MethodGet, "/v1/intents/"+id+"/receipt", nil, e.bearer("ana", "default", "user")...), intents.NotFound)
}
