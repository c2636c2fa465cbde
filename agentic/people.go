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

// askPeople asks people. The order waits for them, so the answer is that of a later task.
func (w *worker) askPeople(ctx context.Context, label string, a catalog.ApprovalAsk) (any, error) {
	if result, err, ok := w.already("approval.ask", a, label); ok {
		return result, err
	}
	var got catalog.ApprovalAskResult
	_, err := w.order(ctx, "approval.ask", a, &got)
	return got, err
}

// edited orders what people have made of the order of an earlier task, under the same call. It
// gives that order in its place, as its model would have called it, and what the call is answered
// with if it waits for people again. Every other call stays as it was.
//
// Crash: before it is sealed the next task does the same; behind that, the record has another
// order of the call, which is the one that the next task goes on with.
func (w *worker) edited(ctx context.Context, c catalog.TranscriptCall) (catalog.TranscriptCall, func() (any, error), error) {
	var to catalog.Changed
	if c.Code != intents.Changed || decoded(c.Result, &to).Args == nil {
		return c, nil, nil
	}
	at := w.at
	at.Call, at.Cause = c.Call, c.IntentID
	a, err := w.sealer.Order(ctx, w.req.Turn, at, c.Type, to.Args, nil)
	var refused *OrderError
	if err != nil && !errors.As(err, &refused) {
		return c, nil, err
	}
	next := catalog.TranscriptCall{ToldCall: c.ToldCall, Args: to.Args, Code: a.Code, Reason: a.Reason}
	next.IntentID, next.Status = a.IntentID, taskDone
	if a.Outcome != nil {
		next.Result = a.Outcome.Result
	}
	switch {
	case a.Code == intents.ApprovalRequired:
		next.Status = taskHeld
		return next, func() (any, error) { return nil, w.waits(next) }, nil
	case err != nil:
		next.Status = taskFailed
	}
	return next, nil, nil
}
