package router

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
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

// erasure is what an accepted record.erase takes away.
type erasure struct {
	tenant   string // of the order that it is about
	position int64
	parts    []string // as the order names them
}

// erasures are those that are to be carried out, with the order in which the
// records say so.
type erasures struct {
	mu      sync.Mutex     // one at a time; guards nothing of the directory
	pending []erasure      // the directory's lock guards this and what follows
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
		if _, can := r.cfg.Blobs.(storage.Collector); !can || t.tenant == systemTenant {
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
	e := erasure{adminTenant(o.tenant, a.Tenant), a.Position, a.Parts}
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

// erased forgets the first n of them.
func (d *Directory) erased(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.erasures.pending = slices.Delete(d.erasures.pending, 0, n)
}

// blobsErased says of an order that its blobs were.
func (d *Directory) blobsErased(position int64) bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.erasures.blobs[position]
}

// erase carries out every erasure that was accepted and is not known to be done.
// At a start that is all of them: what an earlier incarnation has erased is
// looked at and left. After an error they wait for the next time.
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
	eraser, can := r.cfg.Journal.(storage.Eraser)
	if !can {
		return errors.New("router: the journal has orders to erase, and cannot")
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), eraseWait)
	defer cancel()
	failpoint.Hit(failpoint.ErasureAccepted)
	if err := r.eraseBlobs(ctx, pending); err != nil {
		return err
	}
	failpoint.Hit(failpoint.ErasureBlobs)
	var what []storage.Erasure
	for _, e := range pending {
		parts, err := r.partsOf(ctx, e)
		if err != nil {
			return err
		}
		what = append(what, parts...)
	}
	if err := eraser.Erase(ctx, what...); err != nil {
		return err
	}
	failpoint.Hit(failpoint.ErasureDone)
	r.dir.erased(len(pending))
	return nil
}

// eraseFor carries out what an order of the router, or an approval that released
// one, has accepted. Where that cannot be done now the answer to the order is that
// it is under way; it is tried again.
func (r *Router) eraseFor(ctx context.Context, o *order) error {
	if o.env.Type() != typeErase {
		if o.env.Type() == typeApprove {
			r.eraseLater(ctx)
		}
		return nil
	}
	if err := r.erase(ctx); err != nil {
		r.cfg.Log.WarnContext(ctx, "an accepted erasure waits", slog.String("error", err.Error()))
		return intents.Refuse(intents.InFlight, "", "accepted, and some of the bytes are still there, as somebody reads the journal or the disk is full: it is tried again by itself")
	}
	return nil
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

var digestIn = regexp.MustCompile(`sha256:[0-9a-f]{64}`)

// eraseBlobs removes the blobs that the orders' records name and that are there,
// unless a record of another order names them too. Who keeps the same bytes at
// that moment, and has no record yet, finds them gone.
func (r *Router) eraseBlobs(ctx context.Context, pending []erasure) error {
	type blob struct{ tenant, digest string }
	found := map[blob]bool{}
	for _, e := range pending {
		if !slices.Contains(e.parts, catalog.ErasesBlobs) {
			continue
		}
		digests, err := r.named(ctx, e.position)
		if err != nil {
			return err
		}
		for _, digest := range digests {
			there, err := r.kept(ctx, e.tenant, digest)
			if err != nil {
				return err
			}
			if there {
				found[blob{e.tenant, digest}] = true
			}
		}
	}
	if len(found) == 0 {
		return nil
	}
	byDigest := map[string][]blob{}
	for b := range found {
		byDigest[b.digest] = append(byDigest[b.digest], b)
	}
	for rec, err := range r.cfg.Records.Scan(ctx, 0) {
		if err != nil {
			return err
		}
		if of := aboutOrder(rec); of != storage.Nobody && r.dir.blobsErased(of) {
			continue
		}
		for _, part := range rec.Parts {
			for _, digest := range digestIn.FindAll(part, -1) {
				delete(byDigest, string(digest))
			}
		}
	}
	collector, can := r.cfg.Blobs.(storage.Collector)
	if !can {
		return errors.New("router: the store of blobs removes none")
	}
	for _, blobs := range byDigest {
		for _, b := range blobs {
			if _, err := collector.Drop(ctx, b.tenant, "cas://"+b.digest, 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// named are the digests in an order's record and in its outcome's, of whatever.
func (r *Router) named(ctx context.Context, position int64) ([]string, error) {
	records := []int64{position}
	h, err := r.cfg.Journal.Holder(ctx, position)
	switch {
	case err == nil && h.State == storage.StateDone:
		records = append(records, h.Outcome)
	case err != nil && !errors.Is(err, storage.ErrNotFound):
		return nil, err
	}
	var digests []string
	for _, at := range records {
		rec, err := r.cfg.Records.Get(ctx, at)
		if err != nil {
			return nil, err
		}
		for _, part := range rec.Parts {
			digests = append(digests, digestIn.FindAllString(string(part), -1)...)
		}
	}
	slices.Sort(digests)
	return slices.Compact(digests), nil
}

// kept says whether a tenant has a blob.
func (r *Router) kept(ctx context.Context, tenant, digest string) (bool, error) {
	f, _, err := r.cfg.Blobs.Fetch(ctx, tenant, "cas://"+digest)
	if errors.Is(err, storage.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, f.Close()
}

// aboutOrder is the order that a record is of or about; Nobody of none.
func aboutOrder(rec storage.Record) int64 {
	switch rec.Kind {
	case storage.KindOrder:
		return rec.Position
	case storage.KindOutcome:
		return EntryOf(rec).Of
	case storage.KindRelease:
		if rel, err := ReleaseOf(rec); err == nil {
			return rel.Of
		}
	case storage.KindTakeover, storage.KindControl:
	}
	return storage.Nobody
}
