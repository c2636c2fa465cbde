package router

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"sync"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/failpoint"
	"aob.dev/writ/storage"
)

// typeErase takes parts of an order out of its records. Its effect is at its own
// position: from there on nothing may show them. The bytes go as soon as it is
// committed and before it is answered, and if a crash comes between, at the start.
const typeErase = "record.erase"

// eraseWait is how long an erasure waits for those who read the journal.
const eraseWait = 5 * time.Second

// eraseAgain is how often an erasure that could not be carried out is tried again.
const eraseAgain = 10 * time.Second

// erasure is what an accepted record.erase takes away.
type erasure struct {
	number   int    // in the order in which the records say so, from 1
	tenant   string // of the order that it is about
	position int64
	parts    []string // as the order names them
}

// erasures are those that are to be carried out, with the order in which the
// records say so.
type erasures struct {
	mu      sync.Mutex     // one at a time; guards nothing of the directory
	number  int            // of the last one; the directory's lock guards this and what follows
	pending []erasure      // not known to be carried out
	blobs   map[int64]bool // orders whose blobs were erased, by position
}

func noSuchOrder() error {
	return illegal("/intent/args/intent_id", "no order of this tenant with this intent_id is at this position")
}

// mayErase judges a record.erase by the records that it is about (stage 5, for
// those who may): the order has ended, nothing rests on what is to go, and the
// journal can take it away. None of that changes again once it is so.
func (r *Router) mayErase(ctx context.Context, o *order) error {
	if o.env.Type() != typeErase || o.duplicate != nil {
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
	t, err := readDecided(rec)
	if err != nil {
		return err
	}
	if t.tenant != adminTenant(o.env.Principal().Tenant, a.Tenant) || t.decision.IntentID != a.IntentID {
		return noSuchOrder()
	}
	if err := r.mayLose(ctx, a.Parts, rec, &t); err != nil {
		return err
	}
	if slices.Contains(a.Parts, catalog.ErasesBlobs) {
		if _, can := r.cfg.Blobs.(storage.Collector); !can || r.cfg.Holdings == nil || t.tenant == systemTenant {
			return illegal("/intent/args/parts", "blobs of this tenant cannot be erased")
		}
	}
	return nil
}

// mayLose says whether the order may lose parts.
func (r *Router) mayLose(ctx context.Context, parts []string, rec storage.Record, t *decided) error {
	_, erased := rec.Erased[storage.PartOrder]
	_, summary := rec.Parts[storage.PartSummary]
	wantsOrder, wantsResult := slices.Contains(parts, catalog.ErasesOrder), slices.Contains(parts, catalog.ErasesResult)
	switch {
	case t.decision.Verdict == intents.Deny && wantsResult:
		return illegal("/intent/args/parts", "the order was refused: it has no result")
	case t.decision.Verdict != intents.Deny && t.decision.Executor == catalog.ExecutorRouter:
		return illegal("/intent/args/intent_id", "later records rest on an order that the router carries out")
	case wantsOrder && t.decision.Verdict == intents.Hold:
		return illegal("/intent/args/parts", "people were asked about this order, and their approvals rest on it: it stays")
	case wantsOrder && !erased && !summary:
		return illegal("/intent/args/parts", "the record is of an older form, whose order cannot be erased")
	case t.decision.Verdict == intents.Deny:
		return nil
	}
	h, err := r.cfg.Journal.Holder(ctx, t.position)
	if err != nil {
		return err
	}
	if h.State != storage.StateDone {
		return illegal("/intent/args/intent_id", "the order has not ended")
	}
	if !r.dir.planEnded(t.tenant, t.ctx.PlanID) {
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

// planEnded is true of no plan, too.
func (d *Directory) planEnded(tenant, id string) bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	p, ok := d.plans[tenant+"/"+id]
	return id == "" || !ok || final(p.view.Status)
}

// foldErase applies a record.erase: what is told of the order loses its arguments
// too, and the parts wait for the router to take them away.
func (d *Directory) foldErase(o decided) error {
	var a catalog.RecordErase
	if err := json.Unmarshal(o.args, &a); err != nil {
		return err
	}
	d.erasures.number++
	e := erasure{d.erasures.number, adminTenant(o.tenant, a.Tenant), a.Position, a.Parts}
	d.erasures.pending = append(d.erasures.pending, e)
	if slices.Contains(a.Parts, catalog.ErasesBlobs) {
		d.erasures.blobs[a.Position] = true
	}
	if !slices.Contains(a.Parts, catalog.ErasesOrder) {
		return nil
	}
	for _, p := range d.plans {
		for _, f := range p.facts {
			if p.view.TenantID == e.tenant && f.IntentID == a.IntentID {
				f.Args = json.RawMessage(`{}`)
			}
		}
	}
	return nil
}

// erasing are the erasures to be carried out.
func (d *Directory) erasing() []erasure {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return slices.Clone(d.erasures.pending)
}

// erased forgets some of them.
func (d *Directory) erased(done ...erasure) {
	gone := make(map[int]bool, len(done))
	for _, e := range done {
		gone[e.number] = true
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.erasures.pending = slices.DeleteFunc(d.erasures.pending, func(x erasure) bool { return gone[x.number] })
}

// blobsErased says of an order that its blobs were.
func (d *Directory) blobsErased(position int64) bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.erasures.blobs[position]
}

// erase carries out every erasure that was accepted and is not known to be done.
// At a start that is all of them: what an earlier incarnation has erased is
// looked at and left. One that fails waits for the next time and holds up no
// other; the error is of those that failed.
//
// Crash in it: the record says what to do, and the next start does it again.
// Blobs go before the records that name them.
func (r *Router) erase(ctx context.Context) error {
	r.dir.erasures.mu.Lock()
	defer r.dir.erasures.mu.Unlock()
	pending := r.dir.erasing()
	if len(pending) == 0 {
		return nil
	}
	failpoint.Hit(failpoint.ErasureAccepted)
	var ready []erasure
	var failed []error
	for e, err := range r.withoutBlobs(ctx, pending) {
		if err != nil {
			failed = append(failed, fmt.Errorf("order %d: %w", e.position, err))
			continue
		}
		ready = append(ready, e)
	}
	failpoint.Hit(failpoint.ErasureBlobs)
	if err := r.eraseParts(ctx, ready); err == nil {
		r.dir.erased(ready...)
		ready = nil
	} else if errors.Is(err, context.DeadlineExceeded) { // somebody reads the journal, whatever is to go
		return errors.Join(append(failed, err)...)
	}
	for _, e := range ready { // one of them is at fault
		if err := r.eraseParts(ctx, []erasure{e}); err != nil {
			failed = append(failed, fmt.Errorf("order %d: %w", e.position, err))
			continue
		}
		r.dir.erased(e)
	}
	failpoint.Hit(failpoint.ErasureDone)
	return errors.Join(failed...)
}

// withoutBlobs yields the erasures once their blobs are gone, or held, or why that
// could not be found out. All together have eraseWait.
func (r *Router) withoutBlobs(ctx context.Context, pending []erasure) iter.Seq2[erasure, error] {
	return func(yield func(erasure, error) bool) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), eraseWait)
		defer cancel()
		for _, e := range pending {
			if _, err := r.eraseBlobs(ctx, e); !yield(e, err) {
				return
			}
		}
	}
}

// eraseParts takes the parts of some erasures out of their records.
func (r *Router) eraseParts(ctx context.Context, some []erasure) error {
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

// eraseNow carries out one erasure and says which blobs stay, and why.
func (r *Router) eraseNow(ctx context.Context, e erasure) ([]staying, error) {
	r.dir.erasures.mu.Lock()
	defer r.dir.erasures.mu.Unlock()
	failpoint.Hit(failpoint.ErasureAccepted)
	wait, cancel := context.WithTimeout(context.WithoutCancel(ctx), eraseWait)
	defer cancel()
	stay, err := r.eraseBlobs(wait, e)
	if err != nil {
		return nil, err
	}
	failpoint.Hit(failpoint.ErasureBlobs)
	if err := r.eraseParts(ctx, []erasure{e}); err != nil {
		return nil, err
	}
	failpoint.Hit(failpoint.ErasureDone)
	r.dir.erased(e)
	return stay, nil
}

// eraseFor carries out what an order of the router, or an approval that released
// one, has accepted, and does it again for the same order sent again. It refuses
// to say done while bytes are there: where that cannot be helped now the order is
// under way, and it is tried again; where somebody holds them it says who.
func (r *Router) eraseFor(ctx context.Context, o *order) error {
	if o.env.Type() != typeErase {
		if o.env.Type() == typeApprove {
			r.eraseLater(ctx)
		}
		return nil
	}
	a, err := argsOf[catalog.RecordErase](o.env)
	if err != nil {
		return err
	}
	e := erasure{tenant: adminTenant(o.env.Principal().Tenant, a.Tenant), position: a.Position, parts: a.Parts}
	for _, x := range r.dir.erasing() {
		if x.tenant == e.tenant && x.position == e.position && slices.Equal(x.parts, e.parts) {
			e.number = x.number
		}
	}
	stay, err := r.eraseNow(ctx, e)
	if err != nil {
		r.cfg.Log.WarnContext(ctx, "an accepted erasure waits", slog.String("error", err.Error()))
		return underWay("", "accepted, and some of the bytes are still there, as somebody reads the journal, the disk is full, or a store or the index of blobs is behind", eraseWaits)
	}
	if len(stay) > 0 {
		return underWay("/intent/args/parts", told(stay), eraseHolders)
	}
	return nil
}

// eraseWaits is what to do about an erasure that could not be carried out at once.
const eraseWaits = "it is tried again by itself every ten seconds; send the same command again: it says when all is gone"

// underWay says that an erasure is not done. To ask for the order, as of others that
// are under way, would not tell.
func underWay(pointer, reason, hint string) error {
	x := intents.Refuse(intents.InFlight, pointer, reason)
	x.Hint = hint
	return x
}

// eraseLater is erase where nobody waits for it.
func (r *Router) eraseLater(ctx context.Context) {
	if err := r.erase(ctx); err != nil && ctx.Err() == nil {
		r.cfg.Log.WarnContext(ctx, "an accepted erasure waits", slog.String("error", err.Error()))
	}
}

// partsOf are the parts of the order's records and of its outcome's.
func (r *Router) partsOf(ctx context.Context, e erasure) ([]storage.Erasure, error) {
	var out []storage.Erasure
	if slices.Contains(e.parts, catalog.ErasesOrder) {
		out = append(out, storage.Erasure{Position: e.position, Parts: []string{storage.PartOrder, storage.PartGrant}})
	}
	if !slices.Contains(e.parts, catalog.ErasesResult) {
		return out, nil
	}
	h, err := r.cfg.Journal.Holder(ctx, e.position)
	if err != nil {
		return nil, err
	}
	return append(out, storage.Erasure{Position: h.Outcome, Parts: []string{storage.PartResult, storage.PartReason}}), nil
}
