package console

import (
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"aob.dev/writ/bus"
	"aob.dev/writ/gateway/consoleapi"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/problem"
)

// oneWaits answers as the API with one intent that waits for approval; sent are the decisions
// that it received.
type oneWaits struct {
	api
	held   bus.PendingApproval
	skills []consoleapi.Skill
	result string // of the decision
	became string // of the intent, once it is released
	gone   bool   // it waits no more
	refuse bool   // decisions
	sent   []string
}

func (a *oneWaits) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var out any
	switch {
	case r.Method == http.MethodPost && strings.HasPrefix(r.URL.Path, "/agent/approvals/"):
		raw, _ := io.ReadAll(r.Body)
		a.sent = append(a.sent, string(raw))
		if a.refuse {
			problem.New(intents.PolicyDenied, "", "not by you").Write(w)
			return
		}
		fmt.Fprint(w, a.result)
		return
	case a.gone && strings.HasPrefix(r.URL.Path, "/agent/approvals/"):
		problem.New(intents.NotFound, "", "gone").Write(w)
		return
	case strings.HasPrefix(r.URL.Path, "/agent/approvals/"):
		out = a.held
	case r.URL.Path == "/agent/approvals":
		out = bus.ApprovalsReply{Approvals: []bus.PendingApproval{a.held}}
	case strings.HasPrefix(r.URL.Path, "/v1/approvals/"):
		fmt.Fprint(w, a.became)
		return
	case r.URL.Path == consoleapi.Path+"skills":
		out = a.skills
	default:
		a.api.ServeHTTP(w, r)
		return
	}
	_ = json.NewEncoder(w).Encode(out)
}

// decided sends a form to the console, and returns the page shown again, or the message of the
// next page.
func decided(t *testing.T, a *oneWaits, form url.Values) (text string) {
	t.Helper()
	c := newConsole(t, a)
	cookie := logIn(t, c)
	s, _ := c.find(cookie.Value)
	form.Set("csrf", s.CSRF)
	resp := send(c, http.MethodPost, "/console/approvals/"+intents.Digest(nil), form, cookie)
	defer resp.Body.Close()
	raw, _ := io.ReadAll(resp.Body)
	if resp.StatusCode == http.StatusSeeOther {
		return s.takeMessage()
	}
	return html.UnescapeString(string(raw))
}

// TestApprovalForm: a form with no decision, or two, sends nothing, and the entered texts are not
// lost.
func TestApprovalForm(t *testing.T) {
	question := bus.PendingApproval{MayDecide: true, Type: "approval.ask", PlanID: "p", Args: json.RawMessage(`{"title":"Which?","items":[{"id":"a","text":"Berlin"},{"id":"b","text":"Oslo"}]}`)}
	call := bus.PendingApproval{MayDecide: true, Type: "skill.call", PlanID: "p", Args: json.RawMessage("{\"skill\":\"shop.close\",\"input\":{\"n\":1,\"of\":\"a\u202eb\"}}")}
	shownArgs := strings.ReplaceAll(pretty(call.Args), "\n", "\r\n")
	edited := strings.Replace(shownArgs, `"n": 1`, `"n": 5`, 1)
	for name, tt := range map[string]struct {
		held bus.PendingApproval
		form url.Values
		sent string // empty: nothing
		says string
	}{
		"no item":            {question, url.Values{"decision": {"approve"}}, "", "ticked no item"},
		"one item":           {question, url.Values{"decision": {"approve"}, "item": {"b"}}, `{"decision":"approve","items":["b"]}`, "You said approve"},
		"all items":          {question, url.Values{"decision": {"approve_all"}}, `{"decision":"approve","items":["a","b"]}`, "You said approve"},
		"no reason":          {call, url.Values{"decision": {"reject"}, "reason": {" "}}, "", "Say why"},
		"changes, no reason": {call, url.Values{"decision": {"request_changes"}}, "", "Say why"},
		"rejected":           {question, url.Values{"decision": {"reject"}, "reason": {"no"}}, `{"decision":"reject","reason":"no"}`, "You said reject"},
		"as it is":           {call, url.Values{"decision": {"approve"}, "args": {shownArgs}}, `{"decision":"approve"}`, "You said approve"},
		"edited, approve":    {call, url.Values{"decision": {"approve"}, "args": {edited}}, "", `"n": 5`},
		"edited, reject":     {call, url.Values{"decision": {"reject"}, "reason": {"too many"}, "args": {edited}}, "", "too many"},
		"half edited":        {call, url.Values{"decision": {"approve"}, "args": {"{"}}, "", "sends no edit"},
		"edited, no JSON":    {call, url.Values{"decision": {"edit"}, "args": {"{"}}, "", "are no JSON"},
		"edited, and edit":   {call, url.Values{"decision": {"edit"}, "args": {`{"n":5}`}}, `{"args":{"n":5},"decision":"edit"}`, "You said edit"},
		"hidden, not edited": {call, url.Values{"decision": {"edit"}, "args": {shownArgs}}, "", "edited nothing"},
		"for the session":    {call, url.Values{"decision": {"approve_session"}, "uses": {"3"}, "within_sec": {"900"}, "free": {"n"}, "args": {shownArgs}}, `{"also":{"uses":3,"within_sec":900,"free":["n"]},"decision":"approve"}`, "You said approve"},
		"edited, session":    {call, url.Values{"decision": {"approve_session"}, "uses": {"3"}, "within_sec": {"900"}, "args": {edited}}, "", "sends no edit"},
		"withdrawn":          {call, url.Values{"decision": {"withdraw"}}, `{"decision":"withdraw"}`, "wait for people again"},
		"hidden, edited":     {call, url.Values{"decision": {"edit"}, "args": {edited}}, `\u202e`, "You said edit"},
	} {
		a := &oneWaits{held: tt.held, result: `{"state":"held","missing":["r"]}`}
		text := decided(t, a, tt.form)
		if got := strings.Join(a.sent, ""); tt.sent == "" && got != "" || !strings.Contains(got, tt.sent) || !strings.Contains(text, tt.says) {
			t.Errorf("%s: sent %s\n%s", name, got, text)
		}
	}
}

// TestApprovalKeepsText: what somebody has typed outlives a refusal, and the page says what stands.
func TestApprovalKeepsText(t *testing.T) {
	call := bus.PendingApproval{MayDecide: true, Type: "skill.call", PlanID: "p", Args: json.RawMessage(`{"skill":"shop.close","input":{"n":1}}`)}
	text := decided(t, &oneWaits{held: call, refuse: true}, url.Values{"decision": {"reject"}, "reason": {"the wrong shop"}})
	for _, want := range []string{"the wrong shop", "POLICY_DENIED: not by you", "Nothing was changed."} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// shownBy gets the page of an intent that waits.
func shownBy(t *testing.T, a *oneWaits) string {
	t.Helper()
	c := newConsole(t, a)
	resp := send(c, http.MethodGet, "/console/approvals/"+intents.Digest(nil), nil, logIn(t, c))
	defer resp.Body.Close()
	raw, _ := io.ReadAll(resp.Body)
	return html.UnescapeString(string(raw))
}

// TestApprovalOfEnded: a link to an intent that waits no more says what became of it.
func TestApprovalOfEnded(t *testing.T) {
	for became, want := range map[string]string{
		`{"intent_id":"sha256:1","state":"ended","code":"OK"}`:                                  "It was carried out.",
		`{"intent_id":"sha256:1","state":"ended","code":"APPROVAL_REJECTED","reason":"<b>no"}`:  "An approver rejected it: <b>no. (APPROVAL_REJECTED)",
		`{"intent_id":"sha256:1","state":"released","code":"APPROVAL_REQUIRED"}`:                "It is being carried out.",
		`{"intent_id":"sha256:1","state":"ended","code":"EXECUTOR_FAILED","reason":"it broke"}`: "it broke",
	} {
		if text := shownBy(t, &oneWaits{gone: true, became: became}); !strings.Contains(text, want) || strings.Contains(text, `name="decision"`) {
			t.Errorf("%s:\n%s", became, text)
		}
	}
	if text := shownBy(t, &oneWaits{gone: true, became: `{`}); !strings.Contains(text, "NOT_FOUND") {
		t.Errorf("of nobody:\n%s", text)
	}
}

// TestApprovalRows: each argument has a row, whatever the sentence names, and letters that can
// deceive are written out, or their script is named.
func TestApprovalRows(t *testing.T) {
	text := shownBy(t, &oneWaits{held: bus.PendingApproval{
		MayDecide: true, Type: "skill.call", Summary: "Pay \u0430cme",
		Args: json.RawMessage("{\"skill\":\"bank.pay\",\"from\":\"sha256:1\",\"input\":{\"payee\":\"\u0430cme\",\"to\":\"\u0410\u0441\u0435\",\"note\":\"a\\nb\",\"of\":{\"n\":1},\"z\":null}}"),
	}})
	for _, want := range []string{
		"<h1>Pay <U+0430>cme</h1>", "cannot be taken back", "<code><U+0430>cme</code>", "(Cyrillic letters)", "<pre>a\nb</pre>",
		`<th scope="row">from</th><td><code>sha256:1</code>`, `"n": 1`, `<th scope="row">z</th><td><code>null</code>`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// TestApprovalForTheSession: the page offers it for calls that no rule wants to be looked at each time.
func TestApprovalForTheSession(t *testing.T) {
	held := bus.PendingApproval{MayDecide: true, Type: "skill.call", PlanID: "p", Args: json.RawMessage(`{"skill":"shop.close","input":{"n":1,"of":"x"}}`)}
	if text := shownBy(t, &oneWaits{held: held}); !strings.Contains(text, `value="approve_session"`) || strings.Count(text, `name="free"`) != 2 {
		t.Errorf("not offered:\n%s", text)
	}
	held.Rules = []bus.PendingRule{{ID: "r", FourEyes: true}}
	if text := shownBy(t, &oneWaits{held: held}); strings.Contains(text, "approve_session") {
		t.Errorf("offered under four eyes:\n%s", text)
	}
}

// TestApprovalReportsOutcome: a page never reports success before it is known.
func TestApprovalReportsOutcome(t *testing.T) {
	for became, want := range map[string]string{
		`{"state":"ended","code":"OK"}`:                                          "It was carried out.",
		`{"state":"ended","code":"EXECUTOR_FAILED","reason":"manifest changed"}`: "It was released, and then failed. The executor failed: manifest changed. (EXECUTOR_FAILED)",
		`{"state":"released","code":"APPROVAL_REQUIRED"}`:                        "It was released, and has not ended yet.",
	} {
		a := &oneWaits{held: bus.PendingApproval{MayDecide: true, Type: "skill.call", Args: json.RawMessage(`{}`)}, result: `{"state":"released"}`, became: became}
		if text := decided(t, a, url.Values{"decision": {"approve"}}); !strings.HasSuffix(text, want) {
			t.Errorf("%s: %q", became, text)
		}
	}
	a := &oneWaits{held: bus.PendingApproval{MayDecide: true, Type: "skill.call", Args: json.RawMessage(`{}`)}, result: `{"state":"ended","code":"POLICY_DENIED","reason":"the pin is another one"}`}
	if text := decided(t, a, url.Values{"decision": {"approve"}}); !strings.Contains(text, "A policy denies it: the pin is another one. (POLICY_DENIED)") {
		t.Errorf("%q", text)
	}
}

// TestApprovalShowsTheSkill: the approver of a call sees its skill first, and a manifest that
// differs from the approved one, however the call names the skill.
func TestApprovalShowsTheSkill(t *testing.T) {
	pin := &intents.Pin{Skill: "shop.close", Digest: "before", Effect: string(catalog.Pure)}
	now, before := &consoleapi.Version{Digest: "now", Text: "Deletes all.\n"}, &consoleapi.Version{Digest: "before", Text: "Reads one.\n"}
	for name, tt := range map[string]struct {
		skill consoleapi.Skill
		want  []string
	}{
		"changed":        {consoleapi.Skill{Name: "shop.close", Pin: pin, Now: now, Before: before}, []string{"another version", "+Deletes all.", "-Reads one."}},
		"never seen":     {consoleapi.Skill{Name: "shop.close", Pin: pin, Now: now}, []string{"another version", "Deletes all."}},
		"not approved":   {consoleapi.Skill{Name: "shop.close", Now: now}, []string{"another version", "Deletes all."}},
		"not there":      {consoleapi.Skill{Name: "shop.close", Pin: pin}, []string{"No server declares shop.close now"}},
		"as it was once": {consoleapi.Skill{Name: "shop.close", Pin: pin, Now: before}, []string{"Reads one.", "only reads"}},
	} {
		for _, called := range []string{"shop.close", "close"} {
			a := &oneWaits{held: bus.PendingApproval{MayDecide: true, Type: "skill.call", IntentID: intents.Digest(nil), Args: json.RawMessage(`{"input":{},"skill":"` + called + `"}`)}, skills: []consoleapi.Skill{tt.skill}}
			c := newConsole(t, a)
			cookie := logIn(t, c)
			for path, want := range map[string][]string{"/console/approvals/" + intents.Digest(nil): append(tt.want, "of <code>"+called+"</code>"), "/console/approvals": {"<code>" + called + "</code>"}} {
				resp := send(c, http.MethodGet, path, nil, cookie)
				raw, _ := io.ReadAll(resp.Body)
				resp.Body.Close()
				for _, w := range want {
					if !strings.Contains(html.UnescapeString(string(raw)), w) {
						t.Errorf("%s, %s, %s: not %q in\n%s", name, called, path, w, raw)
					}
				}
			}
		}
	}
}
