package e2e

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/visible"
)

// dropped begins a run that waits for people, and gives it with what waits.
func (w *redWorld) dropped(who person) (run, intentID string) {
	w.t.Helper()
	run = w.startRun(who, "drop", nil)
	w.runUntil(who, run, "it waits", waits("b"))
	for _, h := range w.inbox(who) {
		if h.PlanID == run {
			return run, h.IntentID
		}
	}
	w.t.Fatal("nothing waits")
	return "", ""
}

// TestRedTeamApproval: nobody has carried out what waits for others, and nobody by another name
// than that of what was seen.
func TestRedTeamApproval(t *testing.T) {
	t.Parallel()
	w := newRedWorld(t)
	w.addTenant("acme")
	ana, ben, dora := w.addPerson("default", "ana", "user"), w.addApprover("default", "ben"), w.addPerson("default", "dora", "user")
	ben2, eve := w.addApprover("default", "cleo"), w.addApprover("acme", "ben") // a namesake
	run, id := w.dropped(ana)
	other, otherID := w.dropped(ana)
	if _, p := w.decide(ben2, otherID, catalog.DecisionReject, "no"); p.Code != "" {
		t.Fatalf("reject: %+v", p)
	}
	yes := func(more ...string) map[string]any {
		out := map[string]any{"decision": catalog.DecisionApprove}
		for i := 0; i < len(more); i += 2 {
			out[more[i]] = more[i+1]
		}
		return out
	}
	post := func(who person, path string, body any, headers ...string) func() {
		return func() { w.knock(who, http.MethodPost, path, body, headers...) }
	}
	const nodes, byID = "/agent/approvals", "/agent/approvals/"
	nothing := "sha256:" + strings.Repeat("0", 64)
	for name, do := range map[string]func(){
		"her own":                          post(ana, byID+id, yes()),
		"her own, as somebody else":        post(ana, byID+id, yes("user_id", "ben")),
		"her own, with a header":           post(ana, byID+id, yes(), "X-User-Id", "ben"),
		"her own, edited":                  post(ana, byID+id, map[string]any{"decision": "edit", "args": map[string]any{"skill": dropAll, "input": map[string]any{}}}),
		"no approver":                      post(dora, byID+id, yes()),
		"another tenant's approver":        post(eve, byID+id, yes()),
		"another tenant's, naming ours":    post(eve, byID+id, yes("tenant_id", "default")),
		"no key":                           post(person{user: "ben"}, byID+id, yes()),
		"by its node alone":                post(ben, nodes, yes("run_id", run, "node_id", "b")),
		"by its node, an empty id":         post(ben, nodes, yes("run_id", run, "node_id", "b", "intent_id", "")),
		"by its node, the id of nothing":   post(ben, nodes, yes("run_id", run, "node_id", "b", "intent_id", nothing)),
		"by its node, the id of another":   post(ben, nodes, yes("run_id", run, "node_id", "b", "intent_id", otherID)),
		"another run's node with its id":   post(ben, nodes, yes("run_id", other, "node_id", "b", "intent_id", id)),
		"another node with its id":         post(ben, nodes, yes("run_id", run, "node_id", "a", "intent_id", id)),
		"the beginning of its id":          post(ben, byID+id[:20], yes()),
		"its id in capitals":               post(ben, byID+"sha256:"+strings.ToUpper(strings.TrimPrefix(id, "sha256:")), yes()),
		"two ids in one document":          post(ben, nodes, []byte(`{"run_id":"`+run+`","node_id":"b","decision":"approve","intent_id":"`+nothing+`","intent_id":"`+id+`"}`)),
		"a decision in capitals":           post(ben, byID+id, map[string]any{"decision": "APPROVE"}),
		"a member in capitals":             post(ben, byID+id, map[string]any{"Decision": "approve"}),
		"a decision with a long s":         post(ben, byID+id, []byte(`{"deci\u017fion":"approve"}`)),
		"no decision":                      post(ben, byID+id, map[string]any{}),
		"items of a question":              post(ben, byID+id, map[string]any{"decision": "approve", "items": []string{}}),
		"what was rejected":                post(ben, byID+otherID, yes()),
		"what was rejected, by its node":   post(ben, nodes, yes("run_id", other, "node_id", "b", "intent_id", otherID)),
		"what was rejected, a second one":  post(ben2, byID+otherID, yes()),
		"by an intent, its node alone":     func() { w.sign(ben, "hitl.approve", yes("run_id", run, "node_id", "b")) },
		"by an intent of no approver":      func() { w.sign(dora, "hitl.approve", yes("intent_id", id)) },
		"by an intent of who asked":        func() { w.sign(ana, "hitl.approve", yes("intent_id", id)) },
		"by an intent of another tenant's": func() { w.sign(eve, "hitl.approve", yes("intent_id", id)) },
		"by a form without a token":        func() { w.at(ben).send("/console/approvals/"+id, map[string][]string{"decision": {"approve"}}) },
		"by a form of another site": func() {
			b := w.at(ben)
			csrf := b.open("/console/approvals/" + id).csrf()
			b.do(http.MethodPost, "/console/approvals/"+id, map[string][]string{"decision": {"approve"}, "csrf": {csrf}}, http.Header{"Sec-Fetch-Site": {"cross-site"}})
		},
		"by a form with the token of another": func() {
			csrf := w.at(ben2).open("/console/approvals/" + id).csrf()
			w.at(ben).send("/console/approvals/"+id, map[string][]string{"decision": {"approve"}, "csrf": {csrf}})
		},
	} {
		attack(t, attempt{name, func() string { return w.decided(ben, id, do) }})
	}
	for _, role := range []intents.Role{intents.RoleManager, intents.RolePlanner, intents.RoleWorkflow, intents.RoleOperator, intents.RoleRouter, intents.RoleLedger} {
		attack(t, attempt{"by an intent that the key of " + string(role) + " signed", func() string {
			return w.decided(ben, id, func() { w.signAs(role, ben, "hitl.approve", yes("intent_id", id)) })
		}})
	}
	if w.servers["shady"].count("drop_all") > 0 {
		t.Errorf("calls before anybody approved")
	}
	if got := w.calls(dropAll, func() { w.decide(ben, id, catalog.DecisionApprove, ""); w.toEnd(ana, run) }); got == "" {
		t.Error("what is approved as it should be is not called: the attempts show nothing")
	}
}

// decided reports whether an intent is no longer pending approval.
func (w *redWorld) decided(by person, id string, during func()) string {
	w.t.Helper()
	during()
	for _, h := range w.inbox(by) {
		if h.IntentID == id {
			return ""
		}
	}
	return "it is decided"
}

// TestRedTeamInvisible: what people approve has no character that they cannot see, wherever it is
// shown to them as text.
func TestRedTeamInvisible(t *testing.T) {
	t.Parallel()
	w := newRedWorld(t)
	ana, ben := w.addPerson("default", "ana", "user"), w.addApprover("default", "ben")
	for name, hidden := range map[string]string{
		"right to left": "\u202e", "isolate": "\u2067", "mark": "\u200f", "joiner": "\u200d", "space of no width": "\u200b", "soft hyphen": "\u00ad", "filler": "\u3164",
		"half filler": "\uffa0", "braille blank": "\u2800", "tag": "\U000e0041", "selector": "\ufe00", "far selector": "\U000e0101", "shorthand": "\U0001bca0", "music": "\U0001d173",
		"mongolian": "\u180e", "grapheme joiner": "\u034f", "arabic mark": "\u061c", "invisible times": "\u2062", "khmer": "\u17b4", "annotation": "\ufff9", "escape": "\x1b[2K", "backspace": "\b", "c1": "\u009b", "line separator": "\u2028",
	} {
		w.tool(ana, "drop_all", json.RawMessage(marshalled(map[string]string{"note": "a" + hidden + "b", "k" + hidden: "v"})))
		var id string
		for _, h := range w.inbox(ben) {
			if strings.Contains(string(h.Args), "drop_all") {
				id = h.IntentID
			}
		}
		if id == "" {
			t.Fatalf("%s: nothing waits", name)
		}
		cli, _ := w.typed(ben, nil, "approvals", "show", id, "--url", w.url)
		listed, _ := w.typed(ben, nil, "approvals", "list", "--url", w.url)
		for where, text := range map[string]string{"on the command line": string(cli), "in the list": string(listed), "in the console": w.at(ben).open("/console/approvals/" + id).text} {
			attack(t, attempt{name + " " + where, func() string {
				if !strings.Contains(text, "drop_all") {
					return "what waits is not shown: " + text
				}
				for _, r := range hidden {
					if (visible.Hidden(r) || r < ' ') && strings.ContainsRune(text, r) {
						return "it is shown as it is"
					}
				}
				return ""
			}})
		}
		if _, p := w.decide(ben, id, catalog.DecisionReject, "no"); p.Code != "" {
			t.Fatalf("%s: %+v", name, p)
		}
	}
}
