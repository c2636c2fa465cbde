package router

import (
	"context"
	"encoding/json"
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

// eraseWait is how long an erasure waits for those who read the journal.
const eraseWait = 5 * time.Second

// eraseAgain is how often an erasure that could not be carried out is tried again.
const eraseAgain = 10 * time.Second

func noSuchOrder() error {
	return illegal("/intent/args/intent_id", "no order of this tenant with this intent_id is at this position")
}

// mayErase judges a record.erase by the records that it is about (stage 5, after
// stage 6 has allowed it): the order has ended, nothing depends on what is erased, and
// the journal can erase it. Once these hold they hold for good.
func (r *Router) mayErase(ctx context.Context, o *order) error {
	if o.env.Type() != state.TypeErase || o.duplicate != nil {
		return nil
	}
	a, err := argsOf[catalog.RecordErase](o.env)
	if err != nil {
		return err
	}
	if _, can := r.cfg.Journal.(storage.Eraser); !can {
		return illegal("/intent/args", "the journal of this log cannot erase")
	}
	rec, err := r.cfg.Records.Get(ctx, a.Position)
	if errors.Is(err, storage.ErrNotFound) || err == nil && rec.Kind != storage.KindOrder {
		return noSuchOrder()
	}
	if err != nil {
		return err
	}
	t, err := state.ReadOrder(rec)
	if err != nil {
		return err
	}
	if t.Tenant != state.Named(o.env.Principal().Tenant, a.Tenant) || t.Decision.IntentID != a.IntentID {
		return noSuchOrder()
	}
	if err := r.mayLose(ctx, a.Parts, rec, &t); err != nil {
		return err
	}
	if slices.Contains(a.Parts, catalog.ErasesBlobs) {
		if _, can := r.cfg.Blobs.(storage.Collector); !can || r.cfg.Holdings == nil || t.Tenant == "system" {
			return illegal("/intent/args/parts", "blobs of this tenant cannot be erased")
		}
	}
	return nil
}

// mayLose says whether the order may lose parts.
func (r *Router) mayLose(ctx context.Context, parts []string, rec storage.Record, t *state.Order) error {
	_, erased := rec.Erased[storage.PartOrder]
	_, summary := rec.Parts[storage.PartSummary]
	routers := t.Decision.Verdict != intents.Deny && t.Decision.Executor == catalog.ExecutorRouter
	wantsOrder, wantsResult := slices.Contains(parts, catalog.ErasesOrder), slices.Contains(parts, catalog.ErasesResult)
	switch {
	case t.Decision.Verdict == intents.Deny && wantsResult:
		return illegal("/intent/args/parts", "the order was refused: it has no result")
	case routers && wantsOrder && !state.Keeps(t.Type):
		return illegal("/intent/args/intent_id", "later records rest on this order, which the router carried out: it stays, and only its result can be erased")
	case routers && slices.Contains(parts, catalog.ErasesBlobs):
		return illegal("/intent/args/parts", "an order that the router carries out holds no blobs")
	case wantsOrder && t.Decision.Verdict == intents.Hold:
		return illegal("/intent/args/parts", "people were asked about this order, and their approvals rest on it: it stays")
	case wantsOrder && !erased && !summary:
		return illegal("/intent/args/parts", "the record is of an older form, whose order cannot be erased")
	case t.Decision.Verdict == intents.Deny:
		return nil
	}
	h, err := r.cfg.Journal.Holder(ctx, t.Position)
	if err != nil {
		return err
	}
	if h.State != storage.StateDone {
		return illegal("/intent/args/intent_id", "the order has not ended")
	}
	if !r.state.PlanEnded(*t) {
		return illegal("/intent/args/intent_id", "the order's plan has not ended")
	}
	out, err := r.cfg.Records.Get(ctx, h.Outcome)
	if err != nil {
		return err
	}
	var inline struct {
		Result json.RawMessage `json:"result"`
	}
	if err := json.Unmarshal(out.Parts[storage.PartOutcome], &inline); err != nil {
		return fmt.Errorf("record %d: %w", h.Outcome, err)
	}
	if wantsResult && inline.Result != nil {
		return illegal("/intent/args/parts", "the record is of an older form, whose result cannot be erased")
	}
	return nil
}

// erase carries out erasures that were accepted, and says which blobs stay. An
// erasure that was carried out before changes nothing. One that fails waits for the
// next time and delays no other; the error is of those that failed. The caller holds
// erasing.
//
// Crash in it: the record says what to do, and the next start does it again.
// Blobs go before the records that name them.
func (r *Router) erase(ctx context.Context, pending ...state.Erasure) (stay []staying, err error) {
	if len(pending) == 0 {
		return nil, nil
	}
	failpoint.Hit(failpoint.ErasureAccepted)
	var ready []state.Erasure
	var failed []error
	fail := func(e state.Erasure, err error) {
		failed = append(failed, fmt.Errorf("order %d: %w", e.Position, err))
	}
	wait, cancel := context.WithTimeout(context.WithoutCancel(ctx), eraseWait) // for the blobs of all
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
	if err != nil && (len(ready) == 1 || errors.Is(err, context.DeadlineExceeded)) { // somebody reads the journal, whatever is to go
		return nil, errors.Join(append(failed, err)...)
	}
	for _, e := range ready {
		if err != nil { // one of them is at fault: each by itself
			if err := r.eraseParts(ctx, []state.Erasure{e}); err != nil {
				fail(e, err)
				continue
			}
		}
		r.state.Erased(e)
	}
	failpoint.Hit(failpoint.ErasureDone)
	return stay, errors.Join(failed...)
}

// eraseParts takes the parts of some erasures out of their records.
func (r *Router) eraseParts(ctx context.Context, some []state.Erasure) error {
	eraser, can := r.cfg.Journal.(storage.Eraser)
	if !can {
		return errors.New("router: the journal has orders to erase, and cannot")
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), eraseWait)
	defer cancel()
	var what []storage.Erasure
	for _, e := range some {
		parts, err := r.partsOf(ctx, e)
		if err != nil {
			return err
		}
		what = append(what, parts...)
	}
	return eraser.Erase(ctx, what...)
}

// eraseFor carries out the erasure that an order of the router, or an approval that
// released one, has accepted, and does it again if the same order is sent again. The
// answer is not done while bytes are left: if they cannot be erased now the order is
// in flight, and the erasure is tried again; if others hold them it names these.
func (r *Router) eraseFor(ctx context.Context, o *order) error {
	if o.env.Type() != state.TypeErase {
		if o.env.Type() == state.TypeApprove {
			r.eraseLater(ctx)
		}
		return nil
	}
	a, err := argsOf[catalog.RecordErase](o.env)
	if err != nil {
		return err
	}
	e := state.Erasure{Tenant: state.Named(o.env.Principal().Tenant, a.Tenant), Position: a.Position, Parts: a.Parts}
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
		return underWay("", "accepted, and some of the bytes are still there, as somebody reads the journal, the disk is full, or a store or the index of blobs is behind", eraseWaits)
	}
	if len(stay) > 0 {
		return underWay("/intent/args/parts", whoHolds(stay), eraseHolders)
	}
	return nil
}

// eraseWaits is what to do about an erasure that could not be carried out at once.
const eraseWaits = "it is tried again by itself every ten seconds; send the same command again: it says when all is gone"

// underWay is the refusal while an erasure is not done. Its hint is not that of other
// orders in flight: to ask for the order would not show whether the bytes are gone.
func underWay(pointer, reason, hint string) error {
	x := intents.Refuse(intents.InFlight, pointer, reason)
	x.Hint = hint
	return x
}

// eraseLater carries out every erasure that is not known to be done, where nobody
// waits for it. At a start that is all of them.
func (r *Router) eraseLater(ctx context.Context) {
	r.erasing.Lock()
	defer r.erasing.Unlock()
	if _, err := r.erase(ctx, r.state.Erasing()...); err != nil && ctx.Err() == nil {
		r.cfg.Log.WarnContext(ctx, "an accepted erasure waits", slog.String("error", err.Error()))
	}
}

// partsOf are the parts of the order's records and of its outcome's.
func (r *Router) partsOf(ctx context.Context, e state.Erasure) ([]storage.Erasure, error) {
	var out []storage.Erasure
	if slices.Contains(e.Parts, catalog.ErasesOrder) {
		out = append(out, storage.Erasure{Position: e.Position, Parts: []string{storage.PartOrder, storage.PartGrant, storage.PartReplay}})
	}
	if !slices.Contains(e.Parts, catalog.ErasesResult) {
		return out, nil
	}
	h, err := r.cfg.Journal.Holder(ctx, e.Position)
	if err != nil {
		return nil, err
	}
	return append(out, storage.Erasure{Position: h.Outcome, Parts: []string{storage.PartResult, storage.PartReason, storage.PartLines, storage.PartOutputs}}), nil
}
