package audit

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/policies"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/ledger"
)

// keySet that an order or the genesis puts in force; empty: none.
func (it *item) keySet() string {
	if it.genesis != nil {
		return it.genesis.KeySet
	}
	if it.order == nil || it.order.body.Intent.Type != "key.put" {
		return ""
	}
	a, err := unmarshal[catalog.KeyPut](it.order.body.Intent.Args)
	if err != nil {
		return "" // what is no key set puts none in force
	}
	return a.KeySet
}

// effective: an order of the router that took effect where it stands.
func (o *order) effective() bool {
	return o.decision.Verdict == intents.Allow && routers(o.decision)
}

// restsOn says whether later records rest on a record, whosever they are: keys
// and directory of system and of the tenant, and the tenant's plans and steps.
func (it *item) restsOn(of string) bool {
	return it.control != nil || it.order != nil && it.order.effective() && it.order.actsOn(of)
}

// actsOn says whether an order of the router, if it takes effect, is one that
// records of a tenant rest on.
func (o *order) actsOn(of string) bool {
	actor, args := o.body.Actor.Tenant, o.body.Intent.Args
	switch o.body.Intent.Type {
	case "key.put", "policy.push":
		return true // every tenant's
	case state.TypeErase:
		a, err := unmarshal[catalog.RecordErase](args)
		return err != nil || of == "" || state.Named(actor, a.Tenant) == of
	case "admin.put", "skill.approve", "grant.revoke", state.TypeRegistryPush:
		var a struct {
			Tenant string          `json:"tenant"`
			New    *catalog.Tenant `json:"new_tenant"`
		}
		if json.Unmarshal(args, &a) != nil {
			return true
		}
		on := state.Named(actor, a.Tenant)
		if a.New != nil {
			on = a.New.ID
		}
		return of == "" || on == of || on == ledger.SystemTenant
	default:
		return of == "" || actor == of
	}
}

// memory is what an exporter remembers from record to record.
type memory struct {
	waiting map[int64]receipted
	held    map[string]bool  // orders of the router that people were asked about and that records rest on, by intent_id
	release map[int64]string // the same, by position: the key set that their release puts in force
	keys    map[string]bool  // kids that are in force
	token   string           // the key set in force
}

// maxWaiting orders are remembered; others are read again.
const maxWaiting = 1 << 16

// take remembers what later records need: which keys are in force, and orders
// until their outcome.
func (s *memory) take(it *item, digest string) {
	if it.genesis != nil || it.order != nil && it.order.effective() {
		s.know(it.keySet())
	}
	if it.order != nil && it.order.decision.Verdict != intents.Deny && len(s.waiting) < maxWaiting {
		s.waiting[it.Position] = receiptedOf(it, digest)
	}
}

// ofHeld says whether later records rest on a held order of the router, on what
// people decided about it, or on its release, at which it takes effect.
func (s *memory) ofHeld(it *item, of string) bool {
	o := it.order
	switch {
	case it.release != nil:
		token, rests := s.release[it.of]
		s.know(token)
		return rests
	case o == nil || !routers(o.decision):
		return false
	case o.decision.Verdict == intents.Hold && o.actsOn(of):
		s.held[o.decision.IntentID], s.release[it.Position] = true, it.keySet()
		return true
	case o.decision.Verdict == intents.Allow && o.body.Intent.Type == state.TypeApprove:
		a, err := unmarshal[catalog.Approve](o.body.Intent.Args)
		return err == nil && s.held[a.IntentID]
	default:
		return false
	}
}

// know takes a key set that comes into force; empty: none does.
func (s *memory) know(token string) {
	var set intents.KeySet
	if token == "" || intents.PeekClaims(token, &set) != nil {
		return
	}
	s.keys, s.token = map[string]bool{}, token
	for _, k := range set.Keys {
		s.keys[k.KID] = !k.Revoked
	}
}

// tenant whose a record is.
func (x *exporter) tenant(ctx context.Context, it *item) (string, error) {
	switch {
	case it.control != nil:
		return ledger.SystemTenant, nil
	case it.order != nil:
		return it.order.body.Actor.Tenant, nil
	case it.Kind == storage.KindOrder:
		return "", errors.New("too much of the order was erased")
	}
	o, err := x.about(ctx, it.of)
	return o.tenant, err
}

// about gives the order that a record is about.
func (x *exporter) about(ctx context.Context, of int64) (receipted, error) {
	if o, there := x.waiting[of]; there {
		return o, nil
	}
	rec, err := x.Records.Get(ctx, of)
	if err != nil {
		return receipted{}, err
	}
	it := ownItem(rec)
	if it.err != nil || it.order == nil {
		return receipted{}, cmp.Or(it.err, fmt.Errorf("record %d is not an order that can be read", of))
	}
	return receiptedOf(it, rec.Digest()), nil
}

// receipt of the order that an outcome ends: what the router signed for its submitter,
// a pure function of the two records, and who signs it. False where no router key
// that is here was in force. The order is forgotten.
func (x *exporter) receipt(ctx context.Context, it *item, digest string) (r intents.Receipt, key intents.Signer, ok bool, err error) {
	o, err := x.about(ctx, it.of)
	if err != nil {
		return r, key, false, err
	}
	delete(x.waiting, it.of)
	at := slices.IndexFunc(x.RouterKeys, func(s intents.Signer) bool { return x.keys[s.KID] })
	if at < 0 {
		return r, key, false, nil
	}
	return o.receipt(x.Origin, it, digest), x.RouterKeys[at], true, nil
}

// blob makes lines of something that decided, once. What was not kept is left
// out, and what it decided cannot be replayed.
func (x *exporter) blob(ctx context.Context, digest string) (lines []line, err error) {
	if digest == "" || x.blobs[digest] {
		return nil, nil
	}
	x.blobs[digest] = true
	data, err := fetch(ctx, x.Blobs, digest)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var files map[string]string // the file list of a policy or a registry names its files, which name none
	if json.Unmarshal(data, &files) == nil {
		for _, name := range slices.Sorted(maps.Keys(files)) {
			if !intents.IsDigest(files[name]) {
				continue
			}
			more, err := x.blob(ctx, files[name])
			if err != nil {
				return nil, err
			}
			lines = append(lines, more...)
		}
	}
	return append(lines, line{Blob: &Blob{Digest: digest, Data: data}}), nil
}

// fetch reads a blob of tenant system by digest.
func fetch(ctx context.Context, blobs storage.Blobs, digest string) ([]byte, error) {
	return storage.ReadSystem(ctx, blobs, digest)
}

// blob reads one of a tenant by its digest.
func (s Source) blob(ctx context.Context) func(tenant, digest string) ([]byte, error) {
	return func(tenant, digest string) ([]byte, error) {
		f, _, err := s.Blobs.Fetch(ctx, tenant, "cas://"+digest)
		if err != nil {
			return nil, err
		}
		data, err := io.ReadAll(io.LimitReader(f, policies.MaxSeen))
		return data, errors.Join(err, f.Close())
	}
}
