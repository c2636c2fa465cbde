package gateway

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/ratelimit"
)

// Which identities are allowed: the key, the headers and the body against each other.
func TestIdentityMatrix(t *testing.T) {
	w := newWorld(t, nil)
	const path = "/agent/memory/query"
	for _, row := range []struct {
		name    string
		key     string
		header  claim
		body    string // members besides query_text
		code    intents.Code
		pointer string
		user    string // of the intent, if allowed
	}{
		{name: "the key's own user", key: anaKey, user: "ana"},
		{name: "all said twice", key: anaKey, header: claim{"acme", "ana", "s1"}, body: `,"tenant_id":"acme","user_id":"ana","session_id":"s1"`, user: "ana"},
		{name: "any user, with a key that may", key: appKey, header: claim{User: "carl"}, user: "carl"},
		{name: "any user, in the body", key: appKey, body: `,"user_id":"carl"`, user: "carl"},
		{name: "no key", code: intents.Unauthorized},
		{name: "wrong key", key: "key-of-nobody", code: intents.Unauthorized},
		{name: "another tenant in a header", key: anaKey, header: claim{Tenant: "other"}, code: intents.RBACForbidden, pointer: "/tenant_id"},
		{name: "another tenant in the body", key: anaKey, body: `,"tenant_id":"other"`, code: intents.RBACForbidden, pointer: "/tenant_id"},
		{name: "another tenant, with a key that may assert users", key: appKey, header: claim{Tenant: "other", User: "carl"}, code: intents.RBACForbidden, pointer: "/tenant_id"},
		{name: "tenants differ", key: anaKey, header: claim{Tenant: "acme"}, body: `,"tenant_id":"other"`, code: intents.RBACForbidden, pointer: "/tenant_id"},
		{name: "another user in a header", key: anaKey, header: claim{User: "bob"}, code: intents.RBACForbidden, pointer: "/user_id"},
		{name: "another user in the body", key: anaKey, body: `,"user_id":"bob"`, code: intents.RBACForbidden, pointer: "/user_id"},
		{name: "users differ", key: appKey, header: claim{User: "carl"}, body: `,"user_id":"dora"`, code: intents.SchemaInvalid, pointer: "/user_id"},
		{name: "sessions differ", key: anaKey, header: claim{Session: "s1"}, body: `,"session_id":"s2"`, code: intents.SchemaInvalid, pointer: "/session_id"},
		{name: "a key of nobody's, and no user", key: appKey, code: intents.SchemaInvalid, pointer: "/user_id"},
		{name: "a disabled user", key: appKey, header: claim{User: "eve"}, code: intents.RBACForbidden, pointer: "/user_id"},
		{name: "not an identifier", key: appKey, header: claim{User: "carl@acme"}, code: intents.SchemaInvalid, pointer: "/user_id"},
		{name: "an operator", key: appKey, header: claim{User: "ops"}, code: intents.RBACForbidden, pointer: "/user_id"},
		{name: "a session too long", key: anaKey, body: `,"session_id":"` + strings.Repeat("s", 65) + `"`, code: intents.SchemaInvalid, pointer: "/session_id"},
	} {
		t.Run(row.name, func(t *testing.T) {
			header := http.Header{"X-Api-Key": {row.key}, "X-Tenant-Id": {row.header.Tenant}, "X-User-Id": {row.header.User}, "X-Session-Id": {row.header.Session}}
			body := `{"query_text":"x"` + row.body + `}`
			before := len(w.submits("memory.query"))
			if row.code != "" {
				w.refused("POST", path, body, header, row.code, row.pointer)
				if n := len(w.submits("memory.query")); n != before {
					t.Error("an intent was signed all the same")
				}
				return
			}
			if resp := w.call("POST", path, body, header, nil); resp.StatusCode != http.StatusOK {
				t.Fatalf("status %d", resp.StatusCode)
			}
			p := w.submits("memory.query")[before].Principal()
			if p.UserID != row.user || p.Tenant != "acme" {
				t.Errorf("intent is for %+v, want %s of acme", p, row.user)
			}
		})
	}
}

// No grant is issued for a user whose grants were revoked a moment ago: it would be void.
func TestNoGrantRightAfterRevocation(t *testing.T) {
	w := newWorld(t, nil)
	w.set(func(c *core) {
		c.users["ana"] = bus.UserReply{Roles: []string{"user"}, RevokedBefore: w.clock.Now().Add(intents.Leeway + time.Nanosecond)}
	})
	header := http.Header{"X-Api-Key": {anaKey}}
	const path = "/agent/memory/query?query_text=x"
	w.refused("GET", path, "", header, intents.RateLimited, "/user_id")
	w.clock.advance(5 * time.Second)
	w.refused("GET", path, "", header, intents.RateLimited, "/user_id")
	if n := len(w.submits("memory.query")); n != 0 {
		t.Errorf("%d intents were signed all the same", n)
	}
	w.clock.advance(time.Second)
	if resp := w.call("GET", path, "", header, nil); resp.StatusCode != http.StatusOK {
		t.Errorf("status %d", resp.StatusCode)
	}
}

// Roles are the key's, cut to the user's row: an administrator's row adds nothing to the key.
func TestRolesAreCut(t *testing.T) {
	w := newWorld(t, nil)
	for user, want := range map[string][]string{"carl": {"user", "auditor"}, "bob": {"user"}} {
		header := http.Header{"X-Api-Key": {appKey}, "X-User-Id": {user}}
		if resp := w.call("GET", "/agent/memory/query?query_text=x", "", header, nil); resp.StatusCode != http.StatusOK {
			t.Fatalf("status %d", resp.StatusCode)
		}
		envelopes := w.submits("memory.query")
		g := envelopes[len(envelopes)-1].Grant()
		if d := cmp.Diff(want, g.Roles); d != "" {
			t.Errorf("%s: %s", user, d)
		}
		if g.Act.Client != "apikey:k2" || g.For != "" || g.Expires-g.IssuedAt > 900 {
			t.Errorf("%s: grant %+v", user, g)
		}
	}
}

// Each pair of key and user has a rate; strangers have one by address.
func TestRateLimit(t *testing.T) {
	w := newWorld(t, nil, func(c *Config, _ *pace) { c.RateLimit = 2 })
	get := func(key, user string) int {
		return w.call("POST", "/agent/memory/query", `{"query_text":"x"}`, http.Header{"X-Api-Key": {key}, "X-User-Id": {user}}, nil).StatusCode
	}
	var got []int
	for _, by := range []struct{ key, user string }{
		{appKey, "carl"}, {appKey, "carl"}, {appKey, "carl"}, // the third exceeds the rate
		{appKey, "dora"}, {anaKey, "ana"}, // others are not affected
		{"guess1", ""}, {"guess2", ""}, {"guess3", ""},
	} {
		got = append(got, get(by.key, by.user))
	}
	if want := []int{200, 200, 429, 200, 200, 401, 401, 429}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	resp := w.call("POST", "/agent/memory/query", `{"query_text":"x"}`, http.Header{"X-Api-Key": {appKey}, "X-User-Id": {"carl"}}, nil)
	if after := resp.Header.Get("Retry-After"); after != "450" {
		t.Errorf("Retry-After %q, want 450", after)
	}
	w.clock.advance(DefaultRateWindow / 2)
	if status := get(appKey, "carl"); status != http.StatusOK {
		t.Errorf("%d after the wait", status)
	}
}

// A key that acts for many users has a hundred times the rate of one, however many it names.
func TestKeyRate(t *testing.T) {
	w := newWorld(t, nil, func(c *Config, _ *pace) { c.RateLimit, c.RateWindow = 1, usersOfKey*time.Hour })
	ask := func(key, user string) answered {
		return w.call("POST", "/agent/memory/query", `{"query_text":"x"}`, http.Header{"X-Api-Key": {key}, "X-User-Id": {user}}, nil)
	}
	for n := range usersOfKey {
		if got := ask(appKey, fmt.Sprint("user", n)); got.StatusCode != http.StatusOK {
			t.Fatalf("user %d: %d", n, got.StatusCode)
		}
	}
	got := ask(appKey, "another")
	if after := got.Header.Get("Retry-After"); got.StatusCode != http.StatusTooManyRequests || after != "3600" {
		t.Errorf("%d, Retry-After %q", got.StatusCode, after)
	}
	if got := ask(anaKey, "ana"); got.StatusCode != http.StatusOK {
		t.Errorf("another key: %d", got.StatusCode)
	}
}

// The state recorded for a tenant's keys and skills uses that tenant's share only.
func TestRememberedShares(t *testing.T) {
	k := ratelimit.NewRecent[bus.APIKeyReply](callers, keyLife, func() time.Time { return time.Unix(0, 0) })
	k.Put("a", "a", "", 1, bus.APIKeyReply{Found: true, Tenant: "a"})
	c := newClients()
	load := func(tenant, digest string, size int) {
		result, err := json.Marshal(catalog.SkillLoadResult{Skills: []catalog.Manifest{{Digest: digest, Description: strings.Repeat("x", size)}}})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.loaded(tenant, &intents.Answer{Code: intents.OK, Outcome: &intents.Outcome{Result: result}}, map[string]catalog.Manifest{}); err != nil {
			t.Fatal(err)
		}
	}
	load("a", "shared", 1)
	for n := range 2 * callers.All {
		k.Put(fmt.Sprint("b", n), "b", "", 1, bus.APIKeyReply{Found: true, Tenant: "b"})
	}
	load("b", "shared", 1)
	for n := range 100 {
		load("b", fmt.Sprint(n), 1<<20)
	}
	if _, ok := k.Get("a"); !ok || k.Len() > callers.Tenant+1 {
		t.Errorf("known key: %v, of %d", ok, k.Len())
	}
	for tenant, known := range map[string]int{"a": 1, "b": 0} {
		if got, missing := c.known(tenant, []intents.Pin{{Skill: "s.t", Digest: "shared"}}); len(got) != known || len(missing) != 1-known {
			t.Errorf("%s: %d known, missing %v", tenant, len(got), missing)
		}
	}
	if n := c.manifests.Len(); n > 17 {
		t.Errorf("%d manifests of 1 MiB", n)
	}
}

// Unreadable requests count against their key, and are refused unread above the rate.
func TestRefusedRequestsAreMetered(t *testing.T) {
	w := newWorld(t, nil, func(c *Config, _ *pace) { c.RateLimit = 2 })
	ask := func(key, path, body string) int {
		return w.call("POST", path, body, http.Header{"X-Api-Key": {key}, "X-User-Id": {"carl"}}, nil).StatusCode
	}
	var got []int
	for _, by := range []struct{ key, path, body string }{
		{appKey, "/agent/run", `{"message":`},
		{appKey, "/agent/run", `{"message":""}`},
		{appKey, "/agent/run", `{"message":`},
		{appKey, "/agent/memory/query", `{"query_text":"x"}`}, // nothing of this key is read
		{anaKey, "/agent/run", `{"message":7}`},               // others are not affected
	} {
		got = append(got, ask(by.key, by.path, by.body))
	}
	if want := []int{400, 400, 429, 429, 400}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	w.clock.advance(DefaultRateWindow / 2)
	if got := ask(appKey, "/agent/memory/query", `{"query_text":"x"}`); got != http.StatusOK {
		t.Errorf("%d after the wait", got)
	}
}

// A revoked key stops working when its cache entry expires.
func TestRevokedKey(t *testing.T) {
	w := newWorld(t, nil)
	const path = "/agent/memory/query?query_text=x"
	w.call("GET", path, "", nil, nil)
	w.set(func(c *core) { delete(c.apiKeys, intents.Digest([]byte(anaKey))) })
	w.clock.advance(keyLife)
	w.refused("GET", path, "", nil, intents.Unauthorized, "")
}
