package httpapi_test

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"aob.dev/writ/gateway/readapi"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/router/httpapi"
	"aob.dev/writ/storage"
)

// bearer is a grant for reading, of a user who came with a token.
func (e *entrance) bearer(user, tenant string, roles ...string) []string {
	return e.bearerOf("token", user, tenant, roles...)
}

func (e *entrance) bearerOf(client, user, tenant string, roles ...string) []string {
	e.Helper()
	named := func(g *intents.Grant) { g.Act.Client = client; forReading(g) }
	return []string{"Authorization", "Bearer " + e.Grant(user, tenant, routertest.Intent{Roles: roles, Grant: named})}
}

func forReading(g *intents.Grant) { g.Use, g.Expires = intents.UseRead, g.IssuedAt+300 }

// audited records that a user reads a subject, and returns the header that says so.
func (e *entrance) audited(user, subject string) []string {
	e.Helper()
	a := e.OK(routertest.Intent{By: e.Gateway, User: user, Roles: []string{"auditor"}, Type: catalog.TypeAuditRead, Args: catalog.AuditRead{Subject: subject}})
	return []string{readapi.HeaderAudit, a.IntentID}
}

// A read has a grant and sees its tenant's intents: its own, with audit:read all.
func TestGet(t *testing.T) {
	e := open(t)
	e.Want(e.Admin("admin.put", catalog.AdminPut{New: &catalog.Tenant{ID: "acme"}}), intents.OK)
	mine := decoded[intents.Answer](t, e.post(e.Sign(find(e))))
	path := "/v1/intents/" + mine.IntentID
	got := decoded[intents.Answer](t, e.do(http.MethodGet, path, nil, e.bearer("ana", "default", "user")...))
	if got.Code != intents.OK || got.Receipt != mine.Receipt || got.Replayed || got.Outcome == nil || *got.Position != *mine.Position {
		t.Errorf("%+v", got)
	}
	audrey := append(e.bearer("audrey", "default", "auditor"), e.audited("audrey", catalog.SubjectIntent(mine.IntentID))...)
	if w := e.do(http.MethodGet, path, nil, audrey...); w.Code != http.StatusOK {
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

// Refused and held intents are found too, and a read sees what was durable before it.
func TestGetRefused(t *testing.T) {
	e := open(t)
	for range 20 {
		o := find(e)
		o.Roles = []string{"auditor"}
		raw, id := e.SignID(o)
		refused(t, e.post(raw), intents.RBACForbidden)
		a := decoded[intents.Answer](t, e.do(http.MethodGet, "/v1/intents/"+id, nil, e.bearer("ana", "default", "user")...))
		if a.Code != intents.RBACForbidden || a.Outcome != nil || a.Receipt != "" || a.Decision.Verdict != intents.Deny {
			t.Fatalf("%+v", a)
		}
	}
}

// The receipt alone, for whoever may read the intent; a refused one has none.
func TestReceipt(t *testing.T) {
	e := open(t)
	mine := decoded[intents.Answer](t, e.post(e.Sign(find(e))))
	got := decoded[map[string]any](t, e.do(http.MethodGet, "/v1/intents/"+mine.IntentID+"/receipt", nil, e.bearer("ana", "default", "user")...))
	if got["receipt"] != mine.Receipt || got["intent_id"] != mine.IntentID {
		t.Errorf("%v", got)
	}
	refused(t, e.do(http.MethodGet, "/v1/intents/"+mine.IntentID+"/receipt", nil, e.bearer("bob", "default", "user")...), intents.NotFound)
	o := find(e)
	o.Roles = []string{"auditor"}
	raw, id := e.SignID(o)
	refused(t, e.post(raw), intents.RBACForbidden)
	refused(t, e.do(http.MethodGet, "/v1/intents/"+id+"/receipt", nil, e.bearer("ana", "default", "user")...), intents.NotFound)
}

// A read is judged with today's roles: an older grant gives no more than user row and API key give
// now.
func TestReadersRolesOfToday(t *testing.T) {
	e := open(t)
	mine := decoded[intents.Answer](t, e.post(e.Sign(find(e))))
	path := "/v1/intents/" + mine.IntentID
	get := func(headers []string) int { return e.do(http.MethodGet, path, nil, headers...).Code }
	listed := func(headers []string) int {
		page := decoded[struct {
			Intents []struct{} `json:"intents"`
		}](t, e.do(http.MethodGet, "/v1/intents?type=skill.find", nil, headers...))
		return len(page.Intents)
	}
	put := func(a catalog.AdminPut) {
		a.Tenant = "default"
		e.Want(e.Admin("admin.put", a), intents.OK)
	}

	audrey := append(e.bearer("audrey", "default", "auditor"), e.audited("audrey", catalog.SubjectIntent(mine.IntentID))...)
	if get(audrey) != http.StatusOK || listed(audrey) != 1 {
		t.Error("an auditor does not read")
	}
	put(catalog.AdminPut{User: &catalog.User{UserID: "audrey", Roles: []string{"user"}}})
	if got := get(audrey); got != http.StatusNotFound || listed(audrey) != 0 {
		t.Errorf("who is no auditor any more gets %d, and a list of %d", got, listed(audrey))
	}
	put(catalog.AdminPut{User: &catalog.User{UserID: "audrey", Roles: []string{"auditor"}, Disabled: true}})
	for _, at := range []string{path, path + "/receipt", "/v1/intents", "/v1/approvals", "/v1/approvals/" + mine.IntentID, "/v1/policy"} {
		refused(t, e.do(http.MethodGet, at, nil, audrey...), intents.RBACForbidden)
	}

	key := catalog.APIKey{ID: "k9", Hash: intents.Digest([]byte("k9")), UserID: "olga", MaxRoles: []string{"auditor"}}
	olga := e.bearerOf("apikey:k9", "olga", "default", "auditor")
	refused(t, e.do(http.MethodGet, path, nil, olga...), intents.RBACForbidden)
	put(catalog.AdminPut{APIKey: &key})
	olga = append(olga, e.audited("olga", catalog.SubjectIntent(mine.IntentID))...)
	if got := get(olga); got != http.StatusOK {
		t.Errorf("the key's auditor gets %d", got)
	}
	key.MaxRoles = []string{"user"}
	put(catalog.AdminPut{APIKey: &key})
	if got := get(olga); got != http.StatusNotFound {
		t.Errorf("with a key that gives less, %d", got)
	}
	key.Revoked = true
	put(catalog.AdminPut{APIKey: &key})
	refused(t, e.do(http.MethodGet, path, nil, olga...), intents.RBACForbidden)
}

// lagging is a recorder that does not advance.
type lagging struct{}

func (lagging) Reach(context.Context, int64) error { return context.DeadlineExceeded }

// away is an index that does not answer.
type away struct{ storage.Documents }

func (away) Get(context.Context, string, string, string) (storage.Document, error) {
	return storage.Document{}, storage.ErrUnavailable
}

func (away) Search(context.Context, string, string, storage.Query) (storage.Page, error) {
	return storage.Page{}, storage.ErrUnavailable
}

// TestIndexIsLate: a read that the index of intents cannot answer yet, or now, says so, and may be
// repeated: whether there is such an intent is unknown.
func TestIndexIsLate(t *testing.T) {
	e := open(t)
	id := e.OK(find(e)).IntentID
	bearer := e.bearer("ana", "default", "user", "auditor")
	for name, c := range map[string]httpapi.Config{
		"the recorder is behind":    {Recorder: lagging{}},
		"the index does not answer": {Recorder: reached{}, Documents: away{}},
	} {
		c.Router, c.State, c.Policy, c.ConsoleAPI, c.Log = e.Router, e.Dir, e.Policy, reads{w: e.World}, slog.New(slog.DiscardHandler)
		e.handler = contract(t).Handler(t, httpapi.New(c))
		for _, path := range []string{"/v1/intents/" + id, "/v1/intents/" + id + "/receipt", "/v1/approvals/" + id, "/v1/intents?type=skill.find"} {
			w := e.do(http.MethodGet, path, nil, bearer...)
			if p := refused(t, w, intents.Overloaded); !p.Retryable || w.Header().Get("Retry-After") == "" || p.Hint == "" || p.Detail == "" {
				t.Errorf("%s, %s: %s, Retry-After %q", name, path, w.Body, w.Header().Get("Retry-After"))
			}
		}
	}
}

// reached is a recorder that has everything.
type reached struct{}

func (reached) Reach(context.Context, int64) error { return nil }
