package gateway

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/problem"
)

// The owner of an API key gets a grant with the key's rights, for 15 minutes.
func TestGrantOfKey(t *testing.T) {
	w := newWorld(t, nil)
	for _, row := range []struct {
		name, key, body string
		user, session   string
	}{
		{"the key's own user, no body", anaKey, "", "ana", ""},
		{"a session", anaKey, `{"session_id":"s1"}`, "ana", "s1"},
		{"another user, with a key that may", appKey, `{"user_id":"carl"}`, "carl", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			var got grantReply
			resp := w.call("POST", "/v1/grants", row.body, http.Header{"X-Api-Key": {row.key}}, &got)
			if resp.StatusCode != http.StatusCreated || resp.Header.Get("Cache-Control") != "no-store" {
				t.Fatalf("%d %v", resp.StatusCode, resp.Header)
			}
			g, err := intents.OpenGrant(got.Grant, origin, w.keys(), w.clock.Now())
			if err != nil {
				t.Fatal(err)
			}
			life := time.Duration(g.Expires-g.IssuedAt) * time.Second
			if g.Subject != row.user || g.Tenant != "acme" || g.Session != row.session || g.For != "" || life != intents.MaxGrantLife || !slices.Equal(g.Roles, []string{"user", "auditor"}) {
				t.Errorf("%+v", g)
			}
			if r, err := intents.OpenGrant(got.Reading, origin, w.keys(), w.clock.Now()); err != nil || !r.Reads() || g.Reads() || r.Subject != row.user || r.Tenant != "acme" || r.Expires > g.Expires || !slices.Equal(r.Roles, g.Roles) {
				t.Errorf("to read: %+v, %v", r, err)
			}
			var p problem.Problem
			if resp := w.call("GET", "/v1/me", "", http.Header{"X-Api-Key": {got.Reading}}, &p); resp.StatusCode != http.StatusUnauthorized || !strings.Contains(p.Detail, "send an API key here") {
				t.Errorf("as an API key: %d %+v", resp.StatusCode, p)
			}
			if got.User != g.Subject || got.Tenant != g.Tenant || got.Session != g.Session || got.Turn != g.Turn || got.Turn == "" || got.Origin != origin || !slices.Equal(got.Roles, g.Roles) {
				t.Errorf("%+v of %+v", got, g)
			}
		})
	}
	w.refused("POST", "/v1/grants", "", http.Header{"X-Api-Key": {""}}, intents.Unauthorized, "")
	w.refused("POST", "/v1/grants", `{"user_id":"bob"}`, nil, intents.RBACForbidden, "/user_id")
	w.refused("POST", "/v1/grants", `{"tenant_id":"other"}`, nil, intents.RBACForbidden, "/tenant_id")
	w.refused("POST", "/v1/grants", `{"user_id":"eve"}`, http.Header{"X-Api-Key": {appKey}}, intents.RBACForbidden, "/user_id")
}

// A read with an API key reaches the router with a grant of the key's user, and without the key;
// other requests reach it unchanged.
func TestReadsWithKey(t *testing.T) {
	w := newWorld(t, nil)
	s := httptest.NewServer(w.gateway.Reads(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		user := "nobody"
		if g, err := intents.OpenGrant(token, origin, w.keys(), w.clock.Now()); err == nil && g.Reads() {
			user = g.Tenant + "/" + g.Subject
		}
		fmt.Fprintf(rw, "%s key=%s", user, r.Header.Get("X-Api-Key"))
	})))
	t.Cleanup(s.Close)
	w.http = s
	for _, row := range []struct {
		method, path, want string
		header             http.Header
	}{
		{"GET", "/v1/intents", "acme/ana key=", nil},
		{"GET", "/v1/intents/sha256:0/receipt", "acme/ana key=", nil},
		{"GET", "/v1/approvals?mine=true", "acme/ana key=", nil},
		{"GET", "/v1/policy", "acme/ana key=", nil},
		{"GET", "/v1/intents", "acme/carl key=", http.Header{"X-Api-Key": {appKey}, "X-User-Id": {"carl"}}},
		{"GET", "/v1/intents", "nobody key=" + anaKey, http.Header{"Authorization": {"Bearer a.b.c"}}},
		{"GET", "/v1/intentsx", "nobody key=" + anaKey, nil},
		{"POST", "/v1/intents", "nobody key=" + anaKey, nil},
		{"GET", "/v1/catalog", "nobody key=" + anaKey, nil},
	} {
		resp := w.do(t.Context(), row.method, row.path, "", row.header)
		body := make([]byte, 200)
		n, _ := resp.Body.Read(body)
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK || string(body[:n]) != row.want {
			t.Errorf("%s %s: %d %s, want %s", row.method, row.path, resp.StatusCode, body[:n], row.want)
		}
	}
	for name, header := range map[string]http.Header{
		"a wrong key": {"X-Api-Key": {"nobody's"}}, "another user": {"X-User-Id": {"bob"}}, "another tenant": {"X-Tenant-Id": {"other"}},
	} {
		var p problem.Problem
		resp := w.call("GET", "/v1/intents", "", header, &p)
		if resp.StatusCode < 400 || p.TraceID == "" || (p.Code != intents.Unauthorized && p.Code != intents.RBACForbidden) {
			t.Errorf("%s: %d %+v", name, resp.StatusCode, p)
		}
	}
}

// TestAuditedReads: reading what belongs to others signs one audit.read an hour for a reader and a
// subject, whatever the route and however many read at once, before it is answered; a read is
// refused if that is.
func TestAuditedReads(t *testing.T) {
	var w *world
	w = newWorld(t, completing(&w))
	var run runReply
	w.call("POST", "/agent/run", runBody(""), nil, &run)
	as := func(user string) http.Header { return http.Header{"X-Api-Key": {appKey}, "X-User-Id": {user}} }
	path := "/agent/plans/" + run.PlanID
	look := func(user string, tabs int) {
		t.Helper()
		var all sync.WaitGroup
		for range tabs {
			all.Go(func() {
				for _, at := range []string{path, path + "/trace"} {
					if resp := w.call("GET", at, "", as(user), nil); resp.StatusCode != http.StatusOK {
						t.Errorf("%s: HTTP %d", at, resp.StatusCode)
					}
				}
			})
		}
		all.Wait()
	}
	signed := func() int { return len(w.submits(catalog.TypeAuditRead)) }
	w.call("GET", path, "", nil, nil)
	if n := signed(); n != 0 {
		t.Errorf("%d for an own plan", n)
	}
	look("over1", 8)
	w.clock.advance(59 * time.Minute)
	look("over1", 2)
	if n := signed(); n != 1 {
		t.Errorf("%d in an hour", n)
	}
	if e := w.submits(catalog.TypeAuditRead)[0]; e.Principal().UserID != "over1" || string(e.Args()) != `{"subject":"plan:`+run.PlanID+`"}` {
		t.Errorf("%s of %+v", e.Args(), e.Principal())
	}
	look("over2", 1)
	w.clock.advance(time.Minute)
	w.set(func(c *core) { c.audited = nil }) // an hour old
	look("over1", 2)
	if n := signed(); n != 3 {
		t.Errorf("%d for two readers, and one again after an hour", n)
	}
	w.set(func(c *core) {
		c.refuse[catalog.TypeAuditRead] = &intents.Answer{Code: intents.PolicyDenied, Reason: "not at night"}
	})
	w.refused("GET", path, "", as("over3"), intents.PolicyDenied, "")
}
