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

// typeTranscript is the type whose results name results of other intents. The record has its digest
// alone.
const typeTranscript = "transcript.get"

// addDetails adds to an answer what is answered and not recorded.
func (r *Router) addDetails(ctx context.Context, x *execution, a *intents.Answer) error {
	d := &x.decision
	var args catalog.Step // of plan.claim and agent.ask only the plan
	ask := ""
	switch typ := d.env.Type(); {
	case a.Code != intents.OK:
		return nil
	case len(x.images) > 0:
		a.Details, _ = json.Marshal(catalog.SkillCallDetails{Images: x.images}) // plain data
		return nil
	case typ == "plan.claim" || typ == "step" || typ == intents.TypeAgentAsk:
		if err := json.Unmarshal(d.env.Args(), &args); err != nil {
			return err
		}
	case typ == "node.skip" || typ == "plan.get" && d.env.Signer().Role == intents.RoleWorkflow:
		if err := json.Unmarshal(d.env.Args(), &args); err != nil {
			return err
		}
		args.Step = 0
	case typ == "step.finish":
		args.PlanID = d.env.Context().PlanID
	case typ == state.TypeScheduleList:
		a.Details, _ = json.Marshal(map[string]any{"schedules": r.state.Schedules(d.env.Principal().Tenant, d.env.Principal().UserID)}) // plain data
		return nil
	default:
		return nil
	}
	if d.env.Type() == intents.TypeAgentAsk {
		args.Step, ask = d.env.Context().Step, d.env.Context().Call
	}
	told := r.state.PlanDetails(d.env.Principal().Tenant, args.PlanID, args.Step, ask)
	var err error
	if d.env.Type() == "plan.claim" {
		if told.Transient, told.TransientLost, err = r.transient(ctx, d.env.Principal().Tenant, args.PlanID); err != nil {
			return err
		}
	}
	a.Details, err = json.Marshal(told)
	return err
}

// transient are the texts that came with the opening of an open plan; nil: none did, or they are lost:
// their key was destroyed by a later end of the plan, which a restored log lacks, or by damage.
func (r *Router) transient(ctx context.Context, tenant, planID string) (_ *catalog.Transient, lost bool, err error) {
	at := r.state.Transient(tenant, planID)
	if at < 0 {
		return nil, false, nil
	}
	rec, err := r.cfg.Records.Get(ctx, at)
	if err != nil {
		return nil, false, err
	}
	raw, there := rec.Parts[storage.PartTransient]
	if !there {
		return nil, r.state.Transient(tenant, planID) == at, nil // else it has ended meanwhile
	}
	texts, err := intents.ReadTransient(raw)
	return new(catalog.TransientOf(texts)), false, err
}

// transcriptWait is how long transcript.get waits for intents that are being executed, all
// together.
const transcriptWait = 10 * time.Second

// transcript is the input of transcript.get: what calls of the task's place asked for and their
// results. It waits for intents that are being executed.
func (r *Router) transcript(ctx context.Context, d *decision) ([]intents.Input, error) {
	args, err := argsOf[catalog.TranscriptGet](d.env)
	if err != nil {
		return nil, err
	}
	waiting, cancel := context.WithTimeout(ctx, transcriptWait)
	defer cancel()
	calls := make([]catalog.TranscriptCall, len(args.IntentIDs))
	for i, id := range args.IntentIDs {
		c, position, finished, ok := r.state.View().CallOf(d.env.Principal().Tenant, d.env.Context(), id, r.cfg.Now())
		if !ok {
			return nil, illegal("/intent/args/intent_ids", "names no call of this step")
		}
		if calls[i], err = r.transcribed(ctx, waiting, d, c, position, finished); err != nil {
			return nil, err
		}
	}
	value, err := intents.MarshalPlain(calls)
	return []intents.Input{{Pointer: "/calls", Value: value, SHA256: intents.Digest(value), Size: int64(len(value))}}, err
}

// transcribed is a call with its result, or its current state once the time to wait is over.
// finished is the position of an ask's answer.
func (r *Router) transcribed(ctx, waiting context.Context, d *decision, c catalog.CallSummary, position, finished int64) (catalog.TranscriptCall, error) {
	t := catalog.TranscriptCall{CallSummary: c, Args: json.RawMessage(`{}`)}
	a, err := r.Await(waiting, position)
	if waiting.Err() != nil { // as it is now
		a, err = r.Intent(ctx, position)
	}
	if err != nil {
		return t, err
	}
	rec, err := r.cfg.Records.Get(ctx, position)
	if err != nil {
		return t, err
	}
	asked, err := state.ReadIntent(rec)
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
		if t.Reason, result, err = r.askResult(ctx, finished); err != nil {
			return t, err
		}
	}
	t.Result, err = r.shownToday(ctx, d, position, result)
	return t, err
}

// askResult is how an agent that was asked has ended: with a reply, or the reason why there is
// none. An erased intent has neither.
func (r *Router) askResult(ctx context.Context, finished int64) (reason string, reply json.RawMessage, err error) {
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
	o, err := state.ReadIntent(rec)
	if err == nil {
		err = json.Unmarshal(o.Args, &a)
	}
	if a.Reply != nil {
		reply = slices.Concat([]byte(`{"reply":`), a.Reply, []byte("}"))
	}
	return a.Reason, reply, err
}

// shownToday is a result under the masks of today's policy. Results that today's policy does not
// allow are not shown.
func (r *Router) shownToday(ctx context.Context, d *decision, position int64, result json.RawMessage) (json.RawMessage, error) {
	if result == nil {
		return nil, nil
	}
	then, err := r.reopenIn(ctx, d.view, storage.OpenIntent{Position: position, Attempt: 1})
	if err != nil {
		return intents.Mask(result, []string{""}), nil //nolint:nilerr // it was revoked since, say: nothing of it is shown
	}
	then.inputs.Now = intents.FormatTime(d.now)
	then.policy = d.policy
	if err := r.look(ctx, &then.decision); err != nil {
		return intents.Mask(result, []string{""}), nil //nolint:nilerr // what it was called with is gone: nothing of it is shown
	}
	res, err := d.policy.DecideIntent(ctx, then.env, then.inputs)
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

// texts are the pointers of a mask; an invalid pointer masks everything.
func texts(values []any) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i], _ = v.(string)
	}
	return out
}
