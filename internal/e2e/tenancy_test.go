package e2e

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

const berlin = "List the outlets in Berlin"

// memories are what somebody finds about Berlin.
func (s *system) memories(who person) []catalog.MemoryHit {
	s.t.Helper()
	var found catalog.MemoryQueryResult
	if status, p := s.call(who, http.MethodGet, "/agent/memory/query?query_text="+url.QueryEscape("Berlin"), nil, &found); status != http.StatusOK {
		s.t.Fatalf("HTTP %d %+v", status, p)
	}
	return found.Hits
}

// TestTenancy: what belongs to one user is not there for another, of the same
// tenant or of another one.
func TestTenancy(t *testing.T) {
	t.Parallel()
	s := start(t, setup{Skills: []string{serveShop(t).url}})
	s.addTenant("acme")
	ana, bob := s.addPerson("default", "ana", "user"), s.addPerson("default", "bob", "user")
	dan := s.addPerson("default", "dan", "user", "auditor")
	// Another tenant's ana is another person.
	carol, other := s.addPerson("acme", "carol", "user", "auditor", "admin"), s.addPerson("acme", "ana", "user")

	if got := s.ask(carol, berlin); got.Status != "failed" || len(got.called("skill.call")) != 0 {
		t.Errorf("a tenant that has approved no skill: %s, calls %+v", got.Status, got.called("skill.call"))
	}
	s.approveFor("acme")
	hers := s.ask(ana, berlin)
	theirs := s.ask(carol, berlin)
	for _, got := range []turn{hers, theirs} {
		if got.Status != "complete" {
			t.Fatalf("%s: %s", got.Status, got.Reason)
		}
	}
	if hers.Plan.TenantID != "default" || theirs.Plan.TenantID != "acme" || theirs.Plan.UserID != "carol" {
		t.Errorf("plans of %s and %s", hers.Plan.TenantID, theirs.Plan.TenantID)
	}

	ana.session = hers.SessionID
	if found := s.memories(ana); len(found) != 1 || !strings.HasPrefix(found[0].Key, "default:"+hers.SessionID+":") || !strings.Contains(found[0].Text, "Kreuzberg") {
		t.Fatalf("her own memories: %+v", found)
	}
	for name, who := range map[string]person{"same tenant": bob, "auditor of another tenant": carol, "namesake of another tenant": other} {
		who.session = hers.SessionID
		for _, path := range []string{"", "/trace", "/events"} {
			if status, p := s.call(who, http.MethodGet, "/agent/plans/"+hers.PlanID+path, nil, nil); status != http.StatusNotFound || p.Code != intents.NotFound {
				t.Errorf("%s: GET plan%s: HTTP %d %+v", name, path, status, p)
			}
		}
		for _, path := range []string{"/agent/plans/", "/v1/runs/"} {
			for what, id := range map[string]string{"her plan": hers.PlanID, "no plan": "plan_000mx0zw1j647tf2kobh4agiwf"} {
				if status, p := s.call(who, http.MethodDelete, path+id, nil, nil); status != http.StatusNotFound || p.Code != intents.NotFound || p.Detail != "no such plan or run of this user" {
					t.Errorf("%s: DELETE %s of %s: HTTP %d %+v", name, path, what, status, p)
				}
			}
		}
		for path, body := range map[string]any{"/patch": map[string]any{"patch_version": "0.1", "add_nodes": []any{}, "add_edges": []any{}, "remove_edges": []any{map[string]string{"from": "a", "to": "b"}}, "justification": "j"}, "/replay": map[string]any{"from_node": "1", "mode": "freeze"}} {
			for what, id := range map[string]string{"her plan": hers.PlanID, "no plan": "plan_000mx0zw1j647tf2kobh4agiwf"} {
				if status, p := s.call(who, http.MethodPost, "/v1/runs/"+id+path, body, nil); status != http.StatusNotFound || p.Code != intents.NotFound || p.Detail != "no such plan or run of this user" {
					t.Errorf("%s: POST %s of %s: HTTP %d %+v", name, path, what, status, p)
				}
			}
		}
		if found := s.memories(who); len(found) != 0 {
			t.Errorf("%s: memories %+v", name, found)
		}
	}
	if status, p := s.call(dan, http.MethodGet, "/agent/plans/"+hers.PlanID, nil, nil); status != http.StatusOK {
		t.Errorf("her tenant's auditor: HTTP %d %+v", status, p)
	}
}

// TestClaims: headers and body say no more than the key gives.
func TestClaims(t *testing.T) {
	t.Parallel()
	s := start(t, setup{})
	s.addTenant("acme")
	bob := s.addPerson("default", "bob", "user")
	message := func(more map[string]string) map[string]string {
		body := map[string]string{"message": berlin}
		for k, v := range more {
			body[k] = v
		}
		return body
	}
	asAna := bob
	asAna.user = "ana"
	for _, tt := range []struct {
		name string
		user person
		body map[string]string
		http int
		code intents.Code
	}{
		{"another user in the header", asAna, message(nil), http.StatusForbidden, intents.RBACForbidden},
		{"another user in the body", person{key: bob.key}, message(map[string]string{"user_id": "ana"}), http.StatusForbidden, intents.RBACForbidden},
		{"another tenant", bob, message(map[string]string{"tenant_id": "acme"}), http.StatusForbidden, intents.RBACForbidden},
		{"header and body differ", bob, message(map[string]string{"user_id": "ana"}), http.StatusBadRequest, intents.SchemaInvalid},
		{"no key", person{user: "bob"}, message(nil), http.StatusUnauthorized, intents.Unauthorized},
		{"an unknown key", person{key: bob.key + "x", user: "bob"}, message(nil), http.StatusUnauthorized, intents.Unauthorized},
	} {
		if status, p := s.call(tt.user, http.MethodPost, "/agent/run", tt.body, nil); status != tt.http || p.Code != tt.code {
			t.Errorf("%s: HTTP %d %+v, want %d %s", tt.name, status, p, tt.http, tt.code)
		}
	}
	for _, o := range s.intents("") {
		if o.Type == "plan.open" {
			t.Errorf("a plan was opened for %s of %s", o.User, o.Tenant)
		}
	}
}
