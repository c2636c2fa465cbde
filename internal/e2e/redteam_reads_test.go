package e2e

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// canary is in all that a person has, and in nothing that others have.
const canary = "kumquat7731"

// TestRedTeamReads: by no read does somebody find a word that is another's, of the same tenant
// or of another one, whoever is named and whatever rights there are in the own tenant.
func TestRedTeamReads(t *testing.T) {
	t.Parallel()
	w := newRedWorld(t)
	w.addTenant("acme")
	ana, bob := w.addPerson("default", "ana", "user"), w.addPerson("default", "bob", "user")
	w.addApprover("default", "ben")
	eve, namesake := w.addPerson("acme", "eve", "user", "approver", "auditor", "admin"), w.addPerson("acme", "ana", "user", "approver", "auditor", "admin")

	// What ana has: a plan that waits, a run, an artifact, a document, a schedule, a conversation.
	var held heldTurn
	w.call(ana, http.MethodPost, "/agent/run", map[string]string{"agent": "general", "message": canary + " CALL " + dropAll + ` {"note":"` + canary + `"} NOW`}, &held)
	run, waiting := w.dropped(ana)
	var kept struct {
		Artifact string `json:"artifact"`
	}
	w.call(ana, http.MethodPost, "/agent/artifacts", map[string]string{"a": canary}, &kept)
	digest := strings.TrimPrefix(kept.Artifact, "cas://")
	w.call(ana, http.MethodPost, "/agent/kb/documents", map[string]string{"title": canary, "media_type": "text/plain", "text": canary, "scope": "user"}, nil)
	w.call(ana, http.MethodPost, "/agent/schedules", catalog.SchedulePut{Agent: "general", Input: canary, Cron: "0 8 1 1 *"}, nil)
	var plan struct {
		Session string `json:"session_id"`
	}
	if _, _, text := w.knock(ana, http.MethodGet, "/agent/plans/"+held.PlanID, nil); !strings.Contains(text, canary) {
		t.Fatalf("she does not read it herself: %s", text)
	} else if err := json.Unmarshal([]byte(text), &plan); err != nil {
		t.Fatal(err)
	}
	var intentIDs []string
	for _, f := range w.planOf(ana, held.PlanID).IntentHistory {
		intentIDs = append(intentIDs, f.IntentID)
	}
	intentIDs = append(intentIDs, held.Approval.IntentID)
	if held.PlanID == "" || digest == "" || len(intentIDs) == 0 {
		t.Fatalf("plan %q, artifact %q, intents %v", held.PlanID, digest, intentIDs)
	}

	as := "tenant_id=default&user_id=ana&session_id=" + url.QueryEscape(plan.Session)
	paths := []string{
		"/agent/plans?" + as, "/v1/runs?" + as, "/agent/approvals?" + as, "/v1/approvals", "/v1/intents?" + as, "/agent/schedules?" + as, "/agent/kb/documents?" + as, "/agent/cache?" + as,
		"/agent/sessions?" + as, "/reads/plans", "/reads/plans/" + held.PlanID, "/reads/messages", "/reads/sessions",
		"/agent/plans/" + held.PlanID, "/agent/plans/" + held.PlanID + "/trace", "/agent/plans/" + held.PlanID + "/events", "/agent/plans/" + held.PlanID + "?" + as,
		"/v1/runs/" + held.PlanID, "/v1/runs/" + held.PlanID + "/stream", "/v1/runs/" + run, "/v1/runs/" + run + "/stream", "/v1/logs/" + held.PlanID, "/v1/logs/" + run,
		"/agent/artifacts/" + digest, "/agent/artifacts/" + digest + "?" + as, "/agent/approvals/" + waiting, "/v1/approvals/" + waiting,
		"/agent/memory/query?query_text=" + canary + "&" + as, "/agent/memory/query?scope=tenant&query_text=" + canary, "/agent/memory/query?scope=user&query_text=" + canary,
		"/schemas/", "/skills/", "/v1/me?" + as, "/v1/policy", "/health/deep", "/console-api/agents", "/console-api/health", "/console-api/skills", "/console-api/bundle", "/console-api/policy", "//console-api/bundle", "/%63onsole-api/bundle", "/./console-api/bundle", "/console/../console-api/bundle", "/v1/intents/..%2f..%2foffice/bundle", "/console/..%2foffice/bundle", "/Console-api/bundle",
		"/console/now", "/console/plans", "/console/plans/" + held.PlanID, "/console/approvals", "/console/approvals/" + waiting, "/console/record",
	}
	for _, id := range intentIDs {
		paths = append(paths, "/v1/intents/"+id, "/v1/intents/"+id+"/receipt", "/v1/intents/"+id+"/proof", "/v1/approvals/"+id, "/agent/approvals/"+id, "/console-api/intents/"+id, "/console-api/explain/"+id, "/console/intents/"+id, "/console/policies/explain/"+id)
	}
	posts := map[string][]any{
		"/query/": {
			map[string]string{"mode": "SQL", "query": "messages", "session_id": plan.Session},
			map[string]string{"mode": "SQL", "query": "usage"},
			map[string]any{"mode": "SQL", "query": "usage", "whole_tenant": true, "tenant_id": "default"},
			map[string]string{"mode": "SQL", "query": "SELECT * FROM memories"},
			map[string]string{"mode": "SQL", "query": "SELECT * FROM main.memories"},
			map[string]string{"mode": "SQL", "query": "SELECT * FROM documents"},
			map[string]string{"mode": "SQL", "query": "SELECT * FROM sqlite_master"},
			map[string]string{"mode": "SQL", "query": "SELECT * FROM memories WHERE tenant = 'default'"},
			map[string]string{"mode": "SQL", "query": "SELECT * FROM memories UNION SELECT * FROM memories"},
			map[string]string{"mode": "SQL", "query": "SELECT text FROM terms"},
			map[string]string{"mode": "SQL", "query": "ATTACH DATABASE 'documents.db' AS x"},
			map[string]string{"mode": "SQL", "query": "SELECT readfile('documents.db')"},
			map[string]string{"mode": "SEMANTIC", "query": canary},
			map[string]string{"mode": "SEMANTIC", "query": canary, "tenant_id": "default", "user_id": "ana"},
		},
		"/agent/kb/search":    {map[string]any{"q": "kumquat", "k": 10}, map[string]any{"q": canary, "filters": map[string]string{"tenant": "default"}}, map[string]any{"q": canary, "filters": map[string]string{"user": "ana"}}},
		"/agent/memory/query": {map[string]string{"query_text": canary, "tenant_id": "default", "user_id": "ana", "session_id": plan.Session}},
		"/v1/logs":            {map[string]string{"run_id": held.PlanID}, map[string]string{"run_id": run}, map[string]string{"plan_id": held.PlanID}},
	}
	// The words that somebody sends come back in refusals; what is looked for is what was not sent.
	leaks := func(text string, sent ...string) string {
		for _, s := range sent {
			text = strings.ReplaceAll(text, s, "")
		}
		if i := strings.Index(text, canary); i >= 0 {
			return "it has her words: " + text[max(0, i-100):min(len(text), i+100)]
		}
		return ""
	}
	for name, who := range map[string]person{"same tenant": bob, "another tenant": eve, "a namesake of another tenant": namesake, "in her session": {key: bob.key, user: bob.user, session: plan.Session}, "as her": {key: bob.key, user: "ana"}, "nobody": {}} {
		for _, path := range paths {
			if strings.HasPrefix(path, "/agent/artifacts/") && who.key == bob.key {
				continue // artifacts are the tenant's
			}
			attack(t, attempt{name + ": GET " + path, func() string {
				status, _, text := w.knock(who, http.MethodGet, path, nil)
				if status >= http.StatusBadRequest {
					return leaks(text, path, canary+"&")
				}
				return leaks(text)
			}})
		}
		for path, bodies := range posts {
			for _, body := range bodies {
				attack(t, attempt{name + ": POST " + path + " " + marshalled(body), func() string {
					_, _, text := w.knock(who, http.MethodPost, path, body)
					return leaks(text)
				}})
			}
		}
		if who.key == "" {
			continue
		}
		for _, id := range append(intentIDs, waiting) {
			attack(t, attempt{name + ": get_result " + id, func() string {
				return leaks(w.tool(who, "get_result", json.RawMessage(`{"intent_id":"`+id+`"}`)))
			}})
		}
		for typ, args := range map[string]any{
			"artifact.get": catalog.ArtifactGet{Artifact: kept.Artifact}, "plan.get": map[string]string{"plan_id": held.PlanID}, "session.get": map[string]string{"session_id": plan.Session},
			"memory.query": map[string]string{"query_text": canary}, "kb.search": map[string]any{"q": "kumquat", "k": 5}, "logs.stream": map[string]string{"run_id": held.PlanID}, "schedule.list": map[string]string{},
		} {
			if who.user == "ana" && who.key == bob.key {
				continue // no grant for her
			}
			attack(t, attempt{name + ": intent " + typ, func() string {
				_, a, p := w.sign(who, typ, args)
				return leaks(marshalled(a)+marshalled(p), canary+`"`)
			}})
		}
		for _, in := range intentIDs {
			attack(t, attempt{name + ": an intent that works on hers", func() string {
				if who.user == "ana" && who.key == bob.key {
					return ""
				}
				_, a, p := w.sign(who, "artifact.put", map[string]string{"media_type": "application/json", "from": in})
				if a.Code == intents.OK {
					return "it has taken the result"
				}
				return leaks(marshalled(a) + marshalled(p))
			}})
		}
	}
	for _, token := range []string{"", "x", "Bearer"} {
		attack(t, attempt{"a bearer " + token, func() string {
			_, _, text := w.knock(person{}, http.MethodGet, "/v1/intents/"+intentIDs[0], nil, "Authorization", "Bearer "+token)
			return leaks(text)
		}})
	}
}
