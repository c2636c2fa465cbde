package router

import (
	"context"
	"crypto/rand"
	"errors"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// unknownOutcome reports whether the outcome of an earlier call of the intent's skill in the step
// is unknown, and what to do then.
func (d *decision) unknownOutcome() (unknown bool, hint string) {
	if d.pin == nil || d.Effect != string(catalog.Once) {
		return false, ""
	}
	in := d.inPlan()
	f := d.view.UnknownOutcome(&in)
	switch {
	case f == nil:
		return false, ""
	case f.Status == string(intents.StatusIndetermined):
		return true, "once somebody has looked whether it happened: writ intent resolve " + f.IntentID + " done|failed --reason TEXT"
	default:
		return true, "it goes on by itself once " + f.IntentID + " has ended"
	}
}

// ReleaseReady releases held intents that waited for the outcome of another one, once it is known
// and the required approvals are given; and edited intents that need no approval but the editors'.
// Each is judged again, and ends if it is refused by now.
//
// Crash between the outcome that made it known, or intent.resolve, and the release: the intent stays
// held, and is released after the next start. After the release: the intent is open, and recovery
// ends it by its effect.
func (r *Router) ReleaseReady(ctx context.Context) (err error) {
	if _, blocked := r.blocked(); blocked || !r.allExplained() {
		return nil // the clock may be wrong, or the log lacks erasures
	}
	v := r.state.View()
	for _, w := range append(v.AwaitingOutcome(), v.EditedHolds()...) {
		err = errors.Join(err, r.releaseReady(ctx, w))
	}
	return err
}

func (r *Router) releaseReady(ctx context.Context, w state.Hold) (err error) {
	for range maxDecisions {
		if err = r.tryRelease(ctx, w); !errors.Is(err, errStale) {
			return err
		}
	}
	return err
}

func (r *Router) tryRelease(ctx context.Context, w state.Hold) (err error) {
	by := &decision{view: r.state.View(), now: r.now()}
	w, still := by.view.Hold(w.Tenant, w.Decision.IntentID)
	if !still || !by.now.Before(w.Deadline) || len(w.Missing()) > 0 || by.view.UnknownOutcome(&w.Intent) != nil {
		return nil
	}
	by.view.AddPolicyReads(w.Tenant)
	if by.policy, err = r.engine(ctx, by.view, w.Tenant); err != nil {
		return err
	}
	if err := r.policyRecorded(ctx, by); err != nil {
		return err
	}
	if len(w.Approvals) == 1 {
		by.IntentID = w.Edit // the one approval of an edited intent
	}
	by.PolicyDigest, by.Catalog, by.Directory = by.policy.Digest(), r.cfg.Catalog.Digest(), by.view.Position()
	does, err := r.releaseHeld(ctx, by, w, &catalog.ApproveResult{})
	if err != nil || does == nil {
		return err
	}
	res, err := r.cfg.Journal.Commit(context.WithoutCancel(ctx), storage.Commit{ID: rand.Text(), AsOf: by.view.AsOf(), Asserts: by.view.Asserts(), Entries: does.entries})
	switch {
	case does.released == nil:
	case err != nil || res.Verdict != storage.Won: // changed meanwhile: it is checked again
		r.giveUp(does.released)
	default:
		r.shadow.offer([]*execution{does.released})
		r.dispatchAsync(ctx, does.released)
	}
	return err
}
