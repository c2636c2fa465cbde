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

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/bus"
	"aob.dev/writ/internal/office"
)

// oneWaits answers as the API with one order that waits; sent are the decisions that it got.
type oneWaits struct {
	api
	held   bus.HeldOrder
	skills []office.Skill
	result string // of the decision
	became string // of the order, once it is released
	sent   []string
}

func (a *oneWaits) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var out any
	switch {
	case r.Method == http.MethodPost && strings.HasPrefix(r.URL.Path, "/agent/approvals/"):
		raw, _ := io.ReadAll(r.Body)
		a.sent = append(a.sent, string(raw))
		fmt.Fprint(w, a.result)
		return
	case strings.HasPrefix(r.URL.Path, "/agent/approvals/"):
		out = a.held
	case r.URL.Path == "/agent/approvals":
		out = bus.ApprovalsReply{Approvals: []bus.HeldOrder{a.held}}
	case strings.HasPrefix(r.URL.Path, "/v1/approvals/"):
		fmt.Fprint(w, a.became)
		return
	case r.URL.Path == office.Path+"skills":
		out = a.skills
	default:
		a.api.ServeHTTP(w, r)
		return
	}
	_ = json.NewEncoder(w).Encode(out)
}

// decided sends a form to the console, and returns the page that comes back, or what the next
// one says.
func decided(t *testing.T, a *oneWaits, form url.Values) (text string) {
	t.Helper()
	c := newConsole(t, a)
	cookie := logIn(t, c)
	s, _ := c.sessions.find(cookie.Value)
	form.Set("csrf", s.CSRF)
	resp := send(c, http.MethodPost, "/console/approvals/"+intents.Digest(nil), form, cookie)
	defer resp.Body.Close()
	raw, _ := io.ReadAll(resp.Body)
	if resp.StatusCode == http.StatusSeeOther {
		return s.heard()
	}
	return html.UnescapeString(string(raw))
}

// TestApprovalForm: nothing is sent for a form that says nothing, or two things, and what
// somebody has written in it is not lost.
func TestApprovalForm(t *testing.T) {
	question := bus.HeldOrder{MayDecide: true, Type: "approval.ask", PlanID: "p", Args: json.RawMessage(`{"title":"Which?","items":[{"id":"a","text":"Berlin"},{"id":"b","text":"Oslo"}]}`)}
	call := bus.HeldOrder{MayDecide: true, Type: "skill.call", PlanID: "p", Args: json.RawMessage("{\"skill\":\"shop.close\",\"input\":{\"n\":1,\"of\":\"a\u202eb\"}}")}
	shownArgs := strings.ReplaceAll(pretty(call.Args), "\n", "\r\n")
	edited := strings.Replace(shownArgs, `"n": 1`, `"n": 5`, 1)
	for name, tt := range map[string]struct {
		held bus.HeldOrder
		form url.Values
		sent string // empty: nothing
		says string
	}{
		"no item":            {question, url.Values{"decision": {"approve"}}, "", "ticked no item"},
		"one item":           {question, url.Values{"decision": {"approve"}, "item": {"b"}}, `{"decision":"approve","items":["b"]}`, "You said approve"},
		"rejected":           {question, url.Values{"decision": {"reject"}, "reason": {"no"}}, `{"decision":"reject","reason":"no"}`, "You said reject"},
		"as it is":           {call, url.Values{"decision": {"approve"}, "args": {shownArgs}}, `{"decision":"approve"}`, "You said approve"},
		"edited, approve":    {call, url.Values{"decision": {"approve"}, "args": {edited}}, "", `"n": 5`},
		"edited, reject":     {call, url.Values{"decision": {"reject"}, "reason": {"too many"}, "args": {edited}}, "", "too many"},
		"half edited":        {call, url.Values{"decision": {"approve"}, "args": {"{"}}, "", "sends no edit"},
		"edited, no JSON":    {call, url.Values{"decision": {"edit"}, "args": {"{"}}, "", "are no JSON"},
		"edited, and edit":   {call, url.Values{"decision": {"edit"}, "args": {`{"n":5}`}}, `{"args":{"n":5},"decision":"edit"}`, "You said edit"},
		"hidden, not edited": {call, url.Values{"decision": {"edit"}, "args": {shownArgs}}, `\u202e`, "You said edit"},
	} {
		a := &oneWaits{held: tt.held, result: `{"state":"held","missing":["r"]}`}
		text := decided(t, a, tt.form)
		if got := strings.Join(a.sent, ""); tt.sent == "" && got != "" || !strings.Contains(got, tt.sent) || !strings.Contains(text, tt.says) {
			t.Errorf("%s: sent %s\n%s", name, got, text)
		}
	}
}

// TestApprovalSaysWhatBecame: a page never says that something is done before it is known.
func TestApprovalSaysWhatBecame(t *testing.T) {
	for became, want := range map[string]string{
		`{"state":"ended","code":"OK"}`:                                          "It was carried out.",
		`{"state":"ended","code":"EXECUTOR_FAILED","reason":"manifest changed"}`: "It was released, and then failed: EXECUTOR_FAILED, manifest changed.",
		`{"state":"released","code":"APPROVAL_REQUIRED"}`:                        "It was released, and has not ended yet.",
	} {
		a := &oneWaits{held: bus.HeldOrder{MayDecide: true, Type: "skill.call", Args: json.RawMessage(`{}`)}, result: `{"state":"released"}`, became: became}
		if text := decided(t, a, url.Values{"decision": {"approve"}}); !strings.HasSuffix(text, want) {
			t.Errorf("%s: %q", became, text)
		}
	}
	a := &oneWaits{held: bus.HeldOrder{MayDecide: true, Type: "skill.call", Args: json.RawMessage(`{}`)}, result: `{"state":"ended","code":"POLICY_DENIED","reason":"the pin is another one"}`}
	if text := decided(t, a, url.Values{"decision": {"approve"}}); !strings.Contains(text, "POLICY_DENIED. the pin is another one.") {
		t.Errorf("%q", text)
	}
}

// TestApprovalShowsTheSkill: who decides about a call sees its skill first, and a manifest that
// is another one than was approved, however the call names the skill.
func TestApprovalShowsTheSkill(t *testing.T) {
	pin := &intents.Pin{Skill: "shop.close", Digest: "before", Effect: string(catalog.Pure)}
	now, before := &office.Version{Digest: "now", Text: "Deletes all.\n"}, &office.Version{Digest: "before", Text: "Reads one.\n"}
	for name, tt := range map[string]struct {
		skill office.Skill
		want  []string
	}{
		"changed":        {office.Skill{Name: "shop.close", Pin: pin, Now: now, Before: before}, []string{"another version", "+Deletes all.", "-Reads one."}},
		"never seen":     {office.Skill{Name: "shop.close", Pin: pin, Now: now}, []string{"another version", "Deletes all."}},
		"not approved":   {office.Skill{Name: "shop.close", Now: now}, []string{"another version", "Deletes all."}},
		"not there":      {office.Skill{Name: "shop.close", Pin: pin}, []string{"No server declares it now"}},
		"as it was once": {office.Skill{Name: "shop.close", Pin: pin, Now: before}, []string{"Reads one.", "only reads"}},
	} {
		for _, called := range []string{"shop.close", "close"} {
			a := &oneWaits{held: bus.HeldOrder{MayDecide: true, Type: "skill.call", IntentID: intents.Digest(nil), Args: json.RawMessage(`{"input":{},"skill":"` + called + `"}`)}, skills: []office.Skill{tt.skill}}
			c := newConsole(t, a)
			cookie := logIn(t, c)
			for path, want := range map[string][]string{"/console/approvals/" + intents.Digest(nil): append(tt.want, "<h1>skill.call of "+called), "/console/approvals": {"<code>" + called + "</code>"}} {
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
