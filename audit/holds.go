package audit

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/state"
)

// hold retains a held intent for its approvals and its release.
func (f *applier) hold(it *item, o *open) error {
	o.held = it.intent
	terms := it.intent.decision.Hold
	if terms == nil || len(terms.Rules) == 0 {
		return errors.New("held without saying what for")
	}
	deadline, err := time.Parse(time.RFC3339Nano, terms.Deadline)
	if err != nil || deadline.After(it.now.Add(intents.MaxHold)) {
		return errors.New("held without a deadline, or for more than a day")
	}
	return nil
}

// turnedDown: a held intent ends without being carried out for a reason that the
// record shows.
func (f *applier) turnedDown(h state.Hold, it *item) error {
	switch {
	case it.outcome.Status != intents.Failed:
		return errors.New("a held intent was carried out without release")
	case it.outcome.Code == intents.ApprovalRejected && f.whole && !h.Rejected:
		return errors.New("a held intent was rejected, and nobody said so")
	case it.outcome.Code == intents.Changed && f.whole && !h.Edited:
		return errors.New("a held intent was changed, and nobody has edited it")
	case it.outcome.Code == intents.ApprovalExpired && it.At.Before(h.Deadline):
		return errors.New("a held intent expired before its deadline")
	default:
		return nil
	}
}

// takeRelease ends a hold: a router intent takes effect here.
func (f *applier) takeRelease(it *item, j *job) error {
	o, rel := f.intents[it.target], it.release
	var err error
	switch {
	case o == nil && f.whole:
		return errors.New("releases an intent that is not open")
	case o == nil:
		return nil
	}
	view := f.state.View()
	h, waits := view.Hold(o.tenant, o.intentID)
	if !waits || h.Recorded != it.target {
		return errors.New("releases an intent that is not held")
	}
	if err := f.inputs.completeFacts(o.held, &rel.Inputs); err != nil {
		return err
	}
	if f.whole && rel.By != h.Last() && !(rel.By == "" && h.Terms.AwaitsOutcome()) {
		return errors.New("released by another intent than the last approval")
	}
	if f.whole && view.UnknownOutcome(&h.Intent) != nil {
		return errors.New("released although nobody knows what became of an earlier call of its skill")
	}
	j.about, j.task, j.requesters, o.dispatched = o, o.task, &h.Requesters, !routers(h.Decision)
	j.dir, j.revoked = f.generation(rel.Decision.Directory), view.RevokedBefore(h.Tenant, h.User)
	if !it.now.Before(h.Deadline) {
		return errors.New("released after its deadline")
	}
	for _, a := range rel.Inputs.Approvals {
		if given, err := view.Counts(h, a); err != nil && (given || f.whole) {
			return fmt.Errorf("released with %w", err)
		}
	}
	switch {
	case rel.Decision.Directory >= it.Position:
		return errors.New("the release rests on records that come after it")
	case rel.Decision.Catalog != f.state.CatalogDigest():
		return errors.New("released under a catalog that is not in force")
	case rel.Decision.PolicyDigest != view.PolicyDigest():
		return fmt.Errorf("released by policy %s, which is not in force", rel.Decision.PolicyDigest)
	}
	if h.Type == state.TypeApprovalAsk {
		if o.answer, err = state.AnswerOf(h.Args, rel.Inputs.Approvals); err != nil {
			return err
		}
	}
	goes := h.ReleasedIntent(*rel, it.At)
	if routers(h.Decision) {
		f.judge(j, f.state.View(), goes)
		took := *it
		took.intent = o.held
		if err := f.beside(&took); err != nil {
			return err
		}
	}
	f.follow(j, h.Type, f.add(state.Content{Position: it.Position, At: it.At, Release: rel}))
	return nil
}

// answered: the result of a question is who approved what, as its release shows.
func (f *applier) answered(o *open, it *item) error {
	if !f.whole || o.answer == nil || it.outcome.Status != intents.Done || it.missing != nil || len(it.Erased) > 0 {
		return nil
	}
	if is, err := intents.Canonical(it.outcome.Result); err != nil || !bytes.Equal(is, o.answer) {
		return errors.New("the answer to a question is not what people said")
	}
	return nil
}
