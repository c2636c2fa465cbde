package audit

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/state"
)

// hold remembers a held order for its approvals and its release.
func (f *fold) hold(it *item, o *open) error {
	o.held = it.order
	terms := it.order.decision.Hold
	if terms == nil || len(terms.Rules) == 0 {
		return errors.New("held without saying what for")
	}
	deadline, err := time.Parse(time.RFC3339Nano, terms.Deadline)
	if err != nil || deadline.After(it.now.Add(intents.MaxHold)) {
		return errors.New("held without a deadline, or for more than a day")
	}
	return nil
}

// turnedDown: a held order ends without being carried out for a reason that the
// record shows.
func (f *fold) turnedDown(o *open, it *item) error {
	h, _ := f.state.View().Hold(o.tenant, o.intentID)
	switch {
	case it.outcome.Status != intents.Failed:
		return errors.New("a held order was carried out without release")
	case it.outcome.Code == intents.ApprovalRejected && f.whole && !o.refused:
		return errors.New("a held order was rejected, and nobody said so")
	case it.outcome.Code == intents.Changed && f.whole && !o.edited:
		return errors.New("a held order was changed, and nobody has edited it")
	case it.outcome.Code == intents.ApprovalExpired && it.At.Before(h.Deadline):
		return errors.New("a held order expired before its deadline")
	default:
		return nil
	}
}

// takeRelease ends a hold: an order of the router has its effect here.
func (f *fold) takeRelease(it *item, j *job) error {
	o, rel := f.orders[it.of], it.release
	var err error
	switch {
	case o == nil && f.whole:
		return errors.New("releases an order that is not open")
	case o == nil:
		return nil
	case o.verdict != intents.Hold || o.released:
		return errors.New("releases an order that is not held")
	}
	o.released = true
	if err := f.inputs.given(o.held, &rel.Facts); err != nil {
		return err
	}
	view := f.state.View()
	h, _ := view.Hold(o.tenant, o.intentID)
	if f.whole && rel.By != o.last && !(rel.By == "" && h.Terms.Unsettled()) {
		return errors.New("released by another order than the last approval")
	}
	if f.whole && view.Unsettled(&h.Order) != nil {
		return errors.New("released although nobody knows what became of an earlier call of its skill")
	}
	j.about, j.task, j.asked = o, o.task, &h.Asked
	j.dir, j.rules, j.revoked = f.generation(rel.Decision.Directory), view.Rules(), view.Revoked(h.Tenant, h.User)
	if !it.now.Before(h.Deadline) {
		return errors.New("released after its deadline")
	}
	for _, a := range rel.Facts.Approvals {
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
		f.decidedBy(rel.Decision.PolicyDigest, it.Position)
	}
	o.mark = rel.Facts.Breaker
	if h.Type == state.TypeApprovalAsk {
		if o.answer, err = state.AnswerOf(h.Args, rel.Facts.Approvals); err != nil {
			return err
		}
	}
	goes := h.Released(*rel, it.At)
	if err := f.marked(view, &goes, rel.Decision.Verdict); err != nil {
		return err
	}
	if routers(h.Decision) {
		f.judge(j, f.state.View(), goes)
		took := *it
		took.order = o.held
		if err := f.beside(&took); err != nil {
			return err
		}
	}
	f.follow(j, h.Type, f.add(state.Content{Position: it.Position, At: it.At, Release: rel}))
	return nil
}

// answered: the result of a question is who said yes to what, as its release shows.
func (f *fold) answered(o *open, it *item) error {
	if !f.whole || o.answer == nil || it.outcome.Status != intents.Done || it.missing != nil || len(it.Erased) > 0 {
		return nil
	}
	if is, err := intents.Canonical(it.outcome.Result); err != nil || !bytes.Equal(is, o.answer) {
		return errors.New("the answer to a question is not what people said")
	}
	return nil
}
