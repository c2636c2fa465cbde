package router

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/failpoint"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// eraseWait bounds how long an erasure takes before its answer says that it waits.
const eraseWait = 5 * time.Second

// eraseRetry is how often a failed erasure is tried again.
const eraseRetry = 10 * time.Second

func noSuchIntent() error {
	return illegal("/intent/args/intent_id", "no intent of this tenant with this intent_id is at this position")
}

// mayErase judges a record.erase by the records that it names (stage 5, after stage 6 has allowed
// it): the intent has ended, nothing depends on what is erased, and the journal can erase it. Once
// these conditions hold, they hold for good.
func (r *Router) mayErase(ctx context.Context, d *decision) error {
	if d.env.Type() == state.TypeUserErase && d.duplicate == nil {
		return r.mayEraseUser(ctx, d)
	}
	if d.env.Type() != state.TypeErase || d.duplicate != nil {
		return nil
	}
	a, err := argsOf[catalog.RecordErase](d.env)
	if err != nil {
		return err
	}
	if _, can := r.cfg.Journal.(storage.Eraser); !can {
		return illegal("/intent/args", "the journal of this log cannot erase")
	}
	rec, err := r.cfg.Records.Get(ctx, a.Position)
	if errors.Is(err, storage.ErrNotFound) || err == nil && rec.Kind != storage.KindIntent {
		return noSuchIntent()
	}
	if err != nil {
		return err
	}
	t, err := state.ReadIntent(rec)
	if err != nil {
		return err
	}
	if t.Tenant != state.TargetTenant(d.env.Principal().Tenant, a.Tenant) || t.Decision.IntentID != a.IntentID {
		return noSuchIntent()
	}
	if err := r.mayLose(ctx, a.Parts, &t); err != nil {
		return err
	}
	if slices.Contains(a.Parts, catalog.ErasesBlobs) {
		if _, can := r.cfg.Blobs.(storage.Collector); !can || r.cfg.Holdings == nil || t.Tenant == "system" {
			return illegal("/intent/args/parts", "blobs of this tenant cannot be erased")
		}
	}
	return nil
}

// mayLose checks that the intent may lose parts.
func (r *Router) mayLose(ctx context.Context, parts []string, t *state.Intent) error {
	routers := t.Decision.Verdict != intents.Deny && t.Decision.Executor == catalog.ExecutorRouter
	wantsIntent, wantsResult := slices.Contains(parts, catalog.ErasesEnvelope), slices.Contains(parts, catalog.ErasesResult)
	switch {
	case t.Decision.Verdict == intents.Deny && wantsResult:
		return illegal("/intent/args/parts", "the intent was refused: it has no result")
	case routers && wantsIntent && !state.RetainsArgs(t.Type):
		return illegal("/intent/args/intent_id", "later records rest on this intent, which the router carried out: it stays, and only its result can be erased")
	case routers && slices.Contains(parts, catalog.ErasesBlobs):
		return illegal("/intent/args/parts", "an intent that the router carries out holds no blobs")
	case wantsIntent && t.Decision.Verdict == intents.Hold:
		return illegal("/intent/args/parts", "people were asked about this intent, and their approvals rest on it: it stays")
	case t.Decision.Verdict == intents.Deny:
		return nil
	}
	h, err := r.cfg.Journal.Holder(ctx, t.Position)
	if err != nil {
		return err
	}
	if h.State != storage.StateDone {
		return illegal("/intent/args/intent_id", "the intent has not ended")
	}
	if !r.state.PlanEnded(*t) && !r.state.IsUnexplained(t.Position, parts...) { // in a restored log it may be open
		return illegal("/intent/args/intent_id", "the intent's plan has not ended")
	}
	return nil
}

// erase executes accepted erasures and returns the blobs that stay. Repeating a completed erasure
// changes nothing. One that fails is left for the next time and delays no other; the error is that
// of the failed ones. The caller holds erasing.
//
// Crash: the record says what to do, and the next start does it again. Blobs are erased before the
// records that name them.
func (r *Router) erase(ctx context.Context, pending ...state.Erasure) (stay []retainedBlob, err error) {
	if len(pending) == 0 {
		return nil, nil
	}
	failpoint.Hit(failpoint.ErasureAccepted)
	var ready []state.Erasure
	var failed []error
	fail := func(e state.Erasure, err error) {
		failed = append(failed, fmt.Errorf("intent %d: %w", e.Position, err))
	}
	wait, cancel := context.WithTimeout(context.WithoutCancel(ctx), eraseTime(pending)) // for the blobs of all
	defer cancel()
	for _, e := range pending {
		held, err := r.eraseBlobs(wait, e)
		if err != nil {
			fail(e, err)
			continue
		}
		ready, stay = append(ready, e), append(stay, held...)
	}
	failpoint.Hit(failpoint.ErasureBlobs)
	err = r.eraseParts(ctx, ready)
	if err != nil && (len(ready) == 1 || errors.Is(err, context.DeadlineExceeded)) { // the store does not answer, whatever is erased
		return nil, errors.Join(append(failed, err)...)
	}
	for _, e := range ready {
		if err != nil { // one of them is at fault: each on its own
			if err := r.eraseParts(ctx, []state.Erasure{e}); err != nil {
				fail(e, err)
				continue
			}
		}
		r.state.ForgetErasures(e)
		if e.User != "" {
			r.users.forget()
		}
	}
	failpoint.Hit(failpoint.ErasureDone)
	return stay, errors.Join(failed...)
}

// eraseTime bounds how long erasures take.
func eraseTime(some []state.Erasure) time.Duration {
	if slices.ContainsFunc(some, func(e state.Erasure) bool { return e.User != "" }) {
		return eraseUserTime
	}
	return eraseWait
}

// eraseParts removes the parts of several erasures from their records.
func (r *Router) eraseParts(ctx context.Context, some []state.Erasure) error {
	eraser, can := r.cfg.Journal.(storage.Eraser)
	if !can {
		return errors.New("router: the journal has intents to erase, and cannot")
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), eraseTime(some))
	defer cancel()
	var all []int64
	for _, e := range some {
		positions, err := r.recordsOf(ctx, e)
		if err != nil {
			return err
		}
		all = append(all, positions...)
	}
	return eraser.Erase(ctx, all...)
}

// eraseFor executes the erasure that an intent of the router, or an approval that released one, has
// accepted, and repeats it if the same intent is sent again. The answer is not done while bytes are
// left: if they cannot be erased now the intent is in flight and the erasure is tried again; if
// others hold them, the answer names these.
func (r *Router) eraseFor(ctx context.Context, env *intents.Envelope) error {
	if env.Type() == state.TypeUserErase {
		return r.eraseUserFor(ctx, env)
	}
	if env.Type() != state.TypeErase {
		if env.Type() == state.TypeApprove {
			r.eraseInBackground(ctx)
		} else if len(r.state.EndedTransient()) > 0 && r.erasing.TryLock() { // else within a second
			defer r.erasing.Unlock()
			r.eraseTransient(ctx)
		}
		return nil
	}
	a, err := argsOf[catalog.RecordErase](env)
	if err != nil {
		return err
	}
	e := state.Erasure{Tenant: state.TargetTenant(env.Principal().Tenant, a.Tenant), Position: a.Position, Parts: a.Parts}
	for _, x := range r.state.Erasing() {
		if x.Tenant == e.Tenant && x.Position == e.Position && slices.Equal(x.Parts, e.Parts) {
			e.Number = x.Number
		}
	}
	r.erasing.Lock()
	defer r.erasing.Unlock()
	stay, err := r.erase(ctx, e)
	if err != nil {
		r.cfg.Log.WarnContext(ctx, "an accepted erasure waits", slog.String("error", err.Error()))
		return underWay("", "accepted, and some of it is still there, as the disk, a store or the index of blobs fails or is behind", eraseWaits)
	}
	if len(stay) > 0 {
		return underWay("/intent/args/parts", holderTexts(stay), eraseHolders)
	}
	return nil
}

// eraseWaits is the hint for an erasure that could not be executed at once.
const eraseWaits = "it is tried again by itself every ten seconds; send the same command again: it says when all is gone"

// underWay is the refusal while an erasure is not complete. Its hint differs from that of other
// intents in flight, because the intent does not show whether the bytes are gone.
func underWay(pointer, reason, hint string) error {
	x := intents.Refuse(intents.InFlight, pointer, reason)
	x.Hint = hint
	return x
}

// eraseInBackground executes every erasure that is not known to be complete, if nobody waits for
// it. At a start that is all of them.
func (r *Router) eraseInBackground(ctx context.Context) {
	r.erasing.Lock()
	defer r.erasing.Unlock()
	r.eraseTransient(ctx)
	if _, err := r.erase(ctx, r.state.Erasing()...); err != nil && ctx.Err() == nil {
		r.cfg.Log.WarnContext(ctx, "an accepted erasure waits", slog.String("error", err.Error()))
	}
}

// eraseBatch bounds how many texts are destroyed at once. A router that takes over finds those of two
// days: what another one has destroyed it does not know.
const eraseBatch = 256

// eraseTransient destroys the texts beside the openings of plans that have ended. What fails is left
// for the next time. The caller holds erasing.
//
// Crash: the record of the plan's end says what to do, and the next start does it again.
func (r *Router) eraseTransient(ctx context.Context) {
	ended := r.state.EndedTransient()
	if len(ended) == 0 {
		return
	}
	ended = ended[:min(len(ended), eraseBatch)]
	failpoint.Hit(failpoint.TransientEnded)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), eraseWait)
	defer cancel()
	eraser, can := r.cfg.Journal.(storage.Eraser)
	if !can {
		r.state.ForgetTransient(ended)
		return
	}
	if err := eraser.EraseTransient(ctx, ended...); err != nil {
		r.cfg.Log.WarnContext(ctx, "texts of plans that have ended stay for now", slog.String("error", err.Error()))
		return
	}
	r.state.ForgetTransient(ended)
}

// recordsOf returns the records that lose parts: the intent's, its outcome's, or both; or all of a
// user.
func (r *Router) recordsOf(ctx context.Context, e state.Erasure) (positions []int64, err error) {
	if e.User != "" {
		u, err := r.users.of(ctx, r.cfg.Records, e.Tenant, e.User, e.Position)
		return u.lose, err
	}
	if slices.Contains(e.Parts, catalog.ErasesEnvelope) {
		positions = append(positions, e.Position)
	}
	if !slices.Contains(e.Parts, catalog.ErasesResult) {
		return positions, nil
	}
	h, err := r.cfg.Journal.Holder(ctx, e.Position)
	return append(positions, h.Outcome), err
}
