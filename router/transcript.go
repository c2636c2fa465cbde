package router

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// typeTranscript is the type whose results name results of other orders: the record has
// its digest alone.
const typeTranscript = "transcript.get"

// tell adds to the answer of a move what is told and not recorded.
func (r *Router) tell(o *order, a *intents.Answer) error {
	var args catalog.Step // of plan.claim and agent.ask only the plan
	ask := ""
	switch typ := o.env.Type(); {
	case a.Code != intents.OK:
		return nil
	case typ == "plan.claim" || typ == "step" || typ == intents.TypeAgentAsk:
		if err := json.Unmarshal(o.env.Args(), &args); err != nil {
			return err
		}
	case typ == "node.skip" || typ == "plan.get" && o.env.Signer().Role == intents.RoleWorkflow:
		if err := json.Unmarshal(o.env.Args(), &args); err != nil {
			return err
		}
		args.Step = 0
	case typ == "step.finish":
		args.PlanID = o.env.Context().PlanID
	case typ == state.TypeScheduleList:
		a.Told, _ = json.Marshal(map[string]any{"schedules": r.state.Schedules(o.env.Principal().Tenant, o.env.Principal().UserID)}) // plain data
		return nil
	default:
		return nil
	}
	if o.env.Type() == intents.TypeAgentAsk {
		args.Step, ask = o.env.Context().Step, o.env.Context().Call
	}
	told, err := json.Marshal(r.state.Told(o.env.Principal().Tenant, args.PlanID, args.Step, ask))
	a.Told = told
	return err
}

// settleTime is how long transcript.get waits for orders that are being carried out, all together.
const settleTime = 10 * time.Second

// transcript is the input of transcript.get: what calls of the task's place asked for and
// what came of them. Orders that are being carried out are waited for.
func (r *Router) transcript(ctx context.Context, o *order) ([]intents.Input, error) {
	args, err := argsOf[catalog.TranscriptGet](o.env)
	if err != nil {
		return nil, err
	}
	settling, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	calls := make([]catalog.TranscriptCall, len(args.IntentIDs))
	for i, id := range args.IntentIDs {
		c, position, finished, ok := r.state.View().CallOf(o.env.Principal().Tenant, o.env.Context(), id, r.cfg.Now())
		if !ok {
			return nil, illegal("/intent/args/intent_ids", "names no call of this step")
		}
		if calls[i], err = r.transcribed(ctx, settling, o, c, position, finished); err != nil {
			return nil, err
		}
	}
	value, err := intents.MarshalPlain(calls)
	return []intents.Input{{Pointer: "/calls", Value: value, SHA256: intents.Digest(value), Size: int64(len(value))}}, err
}

// transcribed is a call with what became of it, or as it is when the time to settle is over.
// finished is where an ask has its answer.
func (r *Router) transcribed(ctx, settling context.Context, o *order, c catalog.ToldCall, position, finished int64) (catalog.TranscriptCall, error) {
	t := catalog.TranscriptCall{ToldCall: c, Args: json.RawMessage(`{}`)}
	a, err := r.Await(settling, position)
	if settling.Err() != nil { // as it is now
		a, err = r.Order(ctx, position)
	}
	if err != nil {
		return t, err
	}
	rec, err := r.cfg.Records.Get(ctx, position)
	if err != nil {
		return t, err
	}
	asked, err := state.ReadOrder(rec)
	if err != nil {
		return t, err
	}
	if !asked.Erased {
		t.Args = asked.Args
	}
	if a.Outcome == nil {
		t.Reason = a.Reason
		return t, nil
	}
	t.Status, t.Code, t.Reason = string(a.Outcome.Status), a.Outcome.Code, a.Outcome.Reason
	result := a.Outcome.Result
	if c.Type == intents.TypeAgentAsk && t.Code == intents.OK {
		t.Status = c.Status
		if t.Reason, result, err = r.said(ctx, finished); err != nil {
			return t, err
		}
	}
	t.Result, err = r.shownToday(ctx, o, position, result)
	return t, err
}

// said is how an asked agent has ended: with a reply, or the reason why there is none. An
// erased order has neither.
func (r *Router) said(ctx context.Context, finished int64) (reason string, reply json.RawMessage, err error) {
	if finished == 0 {
		return "", nil, nil
	}
	rec, err := r.cfg.Records.Get(ctx, finished)
	if err != nil {
		return "", nil, err
	}
	var a struct {
		Reply  json.RawMessage `json:"reply"`
		Reason string          `json:"reason"`
	}
	o, err := state.ReadOrder(rec)
	if err == nil {
		err = json.Unmarshal(o.Args, &a)
	}
	if a.Reply != nil {
		reply = slices.Concat([]byte(`{"reply":`), a.Reply, []byte("}"))
	}
	return a.Reason, reply, err
}

// shownToday is a result under the masks of today's policy. What that does not allow any
// more is not shown.
func (r *Router) shownToday(ctx context.Context, o *order, position int64, result json.RawMessage) (json.RawMessage, error) {
	if result == nil {
		return nil, nil
	}
	then, err := r.reopenIn(ctx, o.view, storage.OpenOrder{Position: position, Attempt: 1})
	if err != nil {
		return intents.Mask(result, []string{""}), nil //nolint:nilerr // it was revoked since, say: nothing of it is shown
	}
	then.facts.Now = intents.FormatTime(o.now)
	then.policy = o.policy
	if err := r.look(ctx, then); err != nil {
		return intents.Mask(result, []string{""}), nil //nolint:nilerr // what it was called with is gone: nothing of it is shown
	}
	res, err := o.policy.DecideOrder(ctx, then.env, then.facts)
	if err != nil {
		return nil, err
	}
	if res.Verdict() == intents.Deny {
		return intents.Mask(result, []string{""}), nil
	}
	for _, ob := range res.Obligations {
		if pointers, ok := ob.Value.([]any); ok && ob.Name == "mask" {
			result = intents.Mask(result, texts(pointers))
		}
	}
	return result, nil
}

// texts are the pointers of a mask; one that is none masks everything.
func texts(values []any) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i], _ = v.(string)
	}
	return out
}
