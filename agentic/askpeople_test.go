package agentic

import (
	"encoding/json"
	"strings"
	"testing"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state/agents"
)

// editedCall is a call of an earlier task that people have edited.
func editedCall() catalog.TranscriptCall {
	c := earlier("1.0", 7, "failed", intents.Changed)
	c.Result = json.RawMessage(`{"args":{"input":{"close":9},"skill":"outlets"}}`)
	return c
}

// TestEditedCall: the next task signs exactly the edited call, under the same call and with the
// edited intent as its cause. Its model sees the edited call in place of its own.
func TestEditedCall(t *testing.T) {
	c := newCore(t)
	working(c)
	c.on("skill.call", done(catalog.SkillCallResult{Output: json.RawMessage(`{"closed":9}`)}))
	m := says(map[string][]any{agents.Executor: {giveUp}})
	goesOn(t, c, m, editedCall())
	signed := c.ofType("skill.call")
	if len(signed) != 1 || signed[0].Place.Cause != editedCall().IntentID || signed[0].Call != "1.0" || string(signed[0].Args) != `{"input":{"close":9},"skill":"outlets"}` {
		t.Fatalf("%+v", signed)
	}
	read := m.requests(agents.Executor)[0].Messages
	if got := read[len(read)-1].Text + read[len(read)-2].Calls[0].Arguments; !strings.Contains(got, `"closed":9`) || !strings.Contains(got, `{"close":9}`) {
		t.Errorf("%s", got)
	}
}

// TestEditedCallWaits: if more approvals are required the task reports that and ends; the next
// task finds the edited intent under the call.
func TestEditedCallWaits(t *testing.T) {
	c := newCore(t)
	working(c)
	waiting := outcome(intents.ApprovalRequired, "", false)
	c.on("skill.call", func(p placed) *intents.Answer { a := waiting(p); a.Outcome = nil; return a })
	m := says(map[string][]any{agents.Executor: {[]model.Call{call("insufficient", map[string]any{"reason": "it waits"})}}})
	if got := goesOn(t, c, m, editedCall()); got.Status != taskPendingApproval || got.Approval == nil {
		t.Fatalf("%+v", got)
	}
	after := newCore(t)
	working(after)
	next := earlier("1.0", 9, "done", intents.OK)
	goesOn(t, after, says(map[string][]any{agents.Executor: {giveUp}}), editedCall(), next)
	if n := len(after.ofType("skill.call")); n != 0 {
		t.Errorf("%d intents", n)
	}
}

// TestEditedCallFails: an edited call may be refused, and its model reads why.
func TestEditedCallFails(t *testing.T) {
	c := newCore(t)
	working(c)
	c.on("skill.call", refuse(intents.PolicyDenied, "not that one"))
	m := says(map[string][]any{agents.Executor: {giveUp}})
	goesOn(t, c, m, editedCall())
	if got := m.requests(agents.Executor)[0].Messages; !strings.Contains(got[len(got)-1].Text, "not that one") {
		t.Errorf("%+v", got)
	}
}

// TestAskPeople: an agent asks people with a tool, and reads who approved what.
func TestAskPeople(t *testing.T) {
	c := newCore(t)
	selling(c, strings.Replace(serving, "  - name: remind_me\n", "  - name: ask_people\n", 1))
	inLocale(c, "", "")
	c.on("approval.ask", done(catalog.ApprovalAskResult{Approved: []catalog.ApprovedItems{{UserID: "ben", At: "2026-11-20T10:00:00.000Z", Items: []string{"oslo"}}}}))
	asked := catalog.ApprovalAsk{Title: "Which shall I close?", Items: []catalog.AskItem{{ID: "berlin", Text: "Berlin"}, {ID: "oslo", Text: "Oslo"}}}
	m := says(map[string][]any{"seller": {call("ask_people", map[string]any{"items": []string{}}), call("ask_people", asked), "Oslo then."}})
	layer(c, m, "task", "manager")
	dispatchTurn(c)
	shown(c) // to the end
	if list := c.ofType("approval.ask"); len(list) != 1 {
		t.Fatalf("%d intents", len(list))
	}
	if said := results(m.requests("seller")[2]); len(said) != 2 || !strings.Contains(said[0], "title") || !strings.Contains(said[1], `"items":["oslo"]`) {
		t.Errorf("the model was told %q", said)
	}
}
