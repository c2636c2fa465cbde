package httpapi_test

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

type listed struct {
	Intents []catalog.IntentEntry `json:"intents"`
	Cursor  string
}

// list reads as a user with roles.
func (e *entrance) list(user, tenant string, roles []string, query string) listed {
	e.Helper()
	w := e.do(http.MethodGet, "/v1/intents"+query, nil, e.bearer(user, tenant, roles...)...)
	if w.Code != http.StatusOK {
		e.Fatalf("%s: %d %s", query, w.Code, w.Body)
	}
	return decoded[listed](e.T(), w)
}

// T is the test itself.
func (e *entrance) T() *testing.T {
	t, ok := e.TB.(*testing.T)
	if !ok {
		e.Fatal("no test")
	}
	return t
}

// A reader finds its own intents, an auditor those of the tenant, nobody those of another one.
func TestListReadRights(t *testing.T) {
	e := open(t)
	e.Want(e.Admin("admin.put", catalog.AdminPut{New: &catalog.Tenant{ID: "acme"}}), intents.OK)
	for _, who := range []struct{ user, tenant string }{{"ana", "default"}, {"bob", "default"}, {"ana", "acme"}} {
		o := find(e)
		o.User, o.Tenant = who.user, who.tenant
		e.OK(o)
	}
	for _, c := range []struct {
		user, tenant, query string
		roles               []string
		want                int
	}{
		{"ana", "default", "", []string{"user"}, 1},
		{"ana", "default", "?user=ana", []string{"user"}, 1},
		{"ana", "default", "?user=bob", []string{"user"}, 0},
		{"eve", "default", "", []string{"user"}, 0},
		{"eve", "default", "", []string{"auditor"}, 2},
		{"eve", "default", "?user=bob", []string{"auditor"}, 1},
		{"ana", "acme", "", []string{"auditor"}, 1},
		{"ana", "acme", "?user=bob", []string{"auditor"}, 0},
	} {
		got := e.list(c.user, c.tenant, c.roles, c.query)
		if len(got.Intents) != c.want {
			t.Errorf("%+v: %d intents", c, len(got.Intents))
		}
		for _, o := range got.Intents {
			if o.TenantID != c.tenant {
				t.Errorf("%+v: an intent of %s", c, o.TenantID)
			}
		}
	}
	refused(t, e.do(http.MethodGet, "/v1/intents", nil, e.bearer("ana", "nowhere", "auditor")...), intents.RBACForbidden)
	refused(t, e.do(http.MethodGet, "/v1/intents", nil), intents.Unauthorized)
}

// Each parameter narrows, and the pages have everything once, newest first.
func TestListFilters(t *testing.T) {
	e := open(t)
	p := e.NewPlan("p1")
	e.Want(p.Open(), intents.OK)
	e.Clock.Move(time.Minute)
	later := e.Clock.Now().Format(time.RFC3339)
	for range 5 {
		e.OK(find(e))
	}
	denied := find(e)
	denied.Args = map[string]string{"colour": "red"}
	e.Want(e.Do(denied), intents.SchemaInvalid)
	for query, want := range map[string]int{
		"":                              7,
		"?type=plan.open":               1,
		"?type=skill.find":              6,
		"?type=none":                    0,
		"?code=SCHEMA_INVALID":          1,
		"?verdict=allow":                6,
		"?verdict=deny&type=skill.find": 1,
		"?plan_id=" + p.ID:              1,
		"?since=" + later:               6,
		"?until=" + e.Clock.Now().Add(-time.Second).Format(time.RFC3339): 1,
		"?since=" + later + "&until=" + later:                            6,
	} {
		if got := e.list("ana", "default", nil, query); len(got.Intents) != want || got.Cursor != "" {
			t.Errorf("%s: %d intents, want %d", query, len(got.Intents), want)
		}
	}
	var positions []int64
	for next := "?limit=3"; next != "" && len(positions) < 10; {
		got := e.list("ana", "default", nil, next)
		for _, o := range got.Intents {
			positions = append(positions, o.Position)
		}
		if next = ""; got.Cursor != "" {
			next = "?limit=3&cursor=" + url.QueryEscape(got.Cursor)
		}
	}
	if len(positions) != 7 {
		t.Fatalf("%v", positions)
	}
	for i := 1; i < len(positions); i++ {
		if positions[i] >= positions[i-1] {
			t.Errorf("%v", positions)
		}
	}
}

func TestListRefused(t *testing.T) {
	e := open(t)
	ana := e.bearer("ana", "default")
	for _, query := range []string{
		"?tenant=acme", "?type=", "?type=a&type=b", "?type=a%20b", "?verdict=x%00", "?since=yesterday", "?until=1", "?limit=0",
		"?limit=1001", "?limit=x", "?cursor=", "?cursor=nonsense", "?Type=a",
	} {
		p := refused(t, e.do(http.MethodGet, "/v1/intents"+query, nil, ana...), intents.SchemaInvalid)
		if p.Detail == "" || p.TraceID == "" {
			t.Errorf("%s: %+v", query, p)
		}
	}
}
