package agentic

import (
	"context"
	"encoding/json"
	"errors"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

var askPeopleTool = model.Tool{
	Name: "ask_people", Description: "Asks people to approve something, and waits for them: title is the question in one line, detail what they need to know. Each item is something that they can say yes to by itself. The result says who has said yes to which items; an item that is in none was not approved.",
	Schema: json.RawMessage(`{"type":"object","properties":{
"title":{"type":"string","minLength":1,"maxLength":200},
"detail":{"type":"string","minLength":1,"maxLength":8192},
"items":{"type":"array","minItems":1,"maxItems":50,"items":{"type":"object","properties":{"id":{"type":"string","pattern":"^[A-Za-z0-9_.-]{1,64}$"},"text":{"type":"string","minLength":1,"maxLength":1024}},"required":["id","text"],"additionalProperties":false}},
"approvers":{"type":"array","minItems":1,"maxItems":20,"uniqueItems":true,"items":{"type":"string","minLength":1,"maxLength":128},"description":"user IDs, one of whom must say yes; absent: anybody who may approve"}},
"required":["title"],"additionalProperties":false}`),
}

// askPeople asks people. The intent waits for their answer, which a later task receives.
func (w *worker) askPeople(ctx context.Context, label string, a catalog.ApprovalAsk) (any, error) {
	if result, err, ok := w.earlierCall("approval.ask", a, label); ok {
		return result, err
	}
	var got catalog.ApprovalAskResult
	_, err := w.submit(ctx, "approval.ask", a, &got)
	return got, err
}

// edited signs the intent into which people edited the intent of an earlier task, under the same
// call. It returns that intent in place of the earlier one, as its model would have called it,
// and the answer to the call if the new intent waits for approval again. Other calls stay
// unchanged.
//
// Crash: before signing, the next task does the same; after it, the record has another intent of
// the call, from which the next task continues.
func (w *worker) edited(ctx context.Context, c catalog.TranscriptCall) (catalog.TranscriptCall, func() (any, error), error) {
	var to catalog.ChangeResult
	if c.Code != intents.Changed || decoded(c.Result, &to).Args == nil {
		return c, nil, nil
	}
	at := w.place
	at.Call, at.Cause = c.Call, c.IntentID
	a, err := w.submitter.Submit(ctx, w.req.Turn, at, c.Type, to.Args, nil)
	var refused *IntentError
	if err != nil && !errors.As(err, &refused) {
		return c, nil, err
	}
	next := catalog.TranscriptCall{CallSummary: c.CallSummary, Args: to.Args, Code: a.Code, Reason: a.Reason}
	next.IntentID, next.Status = a.IntentID, taskDone
	if a.Outcome != nil {
		next.Result = a.Outcome.Result
	}
	switch {
	case a.Code == intents.ApprovalRequired:
		next.Status = taskPendingApproval
		return next, func() (any, error) { return nil, w.waits(next) }, nil
	case err != nil:
		next.Status = taskFailed
	}
	return next, nil, nil
}
