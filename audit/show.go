package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"aob.dev/writ/intents"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/ledger"
)

// ErrNotFound says that no order with this intent_id is in the journal.
var ErrNotFound = errors.New("no such order")

// Shown is one record, opened for reading.
type Shown struct {
	Position int64                      `json:"position"`
	Kind     storage.Kind               `json:"kind"`
	At       string                     `json:"at"`
	Tenant   string                     `json:"tenant"`
	IntentID string                     `json:"intent_id,omitempty"` // of an order, as are the next four
	Type     string                     `json:"type,omitempty"`
	User     string                     `json:"user,omitempty"`
	Plan     string                     `json:"plan_id,omitempty"`
	Session  string                     `json:"session_id,omitempty"`
	Code     intents.Code               `json:"code,omitempty"`
	Of       *int64                     `json:"of,omitempty"` // the order that it is about
	Digest   string                     `json:"record_digest"`
	Parts    map[string]json.RawMessage `json:"parts,omitempty"`
	Order    *intents.Body              `json:"order,omitempty"`    // what was signed; of an order that was erased its summary
	Withheld map[string]string          `json:"withheld,omitempty"` // parts that were erased, and their digests
}

// Read opens the records of a journal from a position on.
func Read(ctx context.Context, records storage.Records, from int64) iter.Seq2[Shown, error] {
	tenants := ledger.NewTenants(records)
	return func(yield func(Shown, error) bool) {
		for rec, err := range records.Scan(ctx, from) {
			var s Shown
			if err == nil {
				s, err = read(ctx, tenants, rec)
			}
			if !yield(s, err) || err != nil {
				return
			}
		}
	}
}

func read(ctx context.Context, tenants *ledger.Tenants, rec storage.Record) (Shown, error) {
	s := Shown{Position: rec.Position, Kind: rec.Kind, At: intents.FormatTime(rec.At), Digest: rec.Digest(), Parts: rec.Parts, Withheld: rec.Erased}
	var err error
	if s.Tenant, err = tenants.Of(ctx, rec); err != nil {
		return s, err
	}
	it := ownItem(rec)
	if it.err != nil {
		return s, fmt.Errorf("record %d: %w", rec.Position, it.err)
	}
	switch o := it.order; {
	case o != nil:
		d := o.decision
		s.Order, s.IntentID, s.Code, s.Type, s.User = &o.body, d.IntentID, d.Code, o.body.Intent.Type, o.body.Actor.UserID
		s.Plan, s.Session = o.ctx.PlanID, o.ctx.SessionID
	case it.control != nil || it.Kind == storage.KindOrder:
	case it.outcome != nil:
		s.Code = it.outcome.Code
		fallthrough
	default:
		s.Of = &it.of
	}
	return s, nil
}

// Find reads everything about an order: its own record, and what follows on it.
func Find(ctx context.Context, records storage.Records, id string) ([]Shown, error) {
	tenants := ledger.NewTenants(records)
	var out []Shown
	for rec, err := range records.Scan(ctx, 0) {
		if err != nil {
			return nil, err
		}
		if len(out) == 0 && rec.Kind != storage.KindOrder {
			continue
		}
		s, err := read(ctx, tenants, rec)
		if err != nil {
			return nil, err
		}
		if s.IntentID == id || (len(out) > 0 && s.Of != nil && *s.Of == out[0].Position) {
			out = append(out, s)
		}
	}
	if len(out) == 0 {
		return nil, ErrNotFound
	}
	return out, nil
}

// Proof of one order: that its records are in the log, and what the router signed
// of them. Whoever has pinned the root key needs nothing else; the parts of the
// records are not in it.
type Proof struct {
	Origin    string             `json:"origin"`
	IntentID  string             `json:"intent_id"`
	Receipt   string             `json:"receipt,omitempty"`
	KeySets   []string           `json:"key_sets"` // signed by the root key, oldest first
	Inclusion []ledger.Inclusion `json:"inclusion"`
}

// Prove one order. A record that is in no checkpoint yet gives ledger.ErrPending.
func Prove(ctx context.Context, s Source, id string) (Proof, error) {
	p := Proof{Origin: s.Origin, IntentID: id}
	x := newExporter(s)
	var about []int64 // the order, and what follows on it
	for rec, err := range s.Records.Scan(ctx, 0) {
		if err != nil {
			return p, err
		}
		it, digest := ownItem(rec), rec.Digest()
		if it.err != nil {
			return p, it.err
		}
		x.take(it, digest)
		x.ofHeld(it, "")
		if n := len(p.KeySets); x.token != "" && (n == 0 || p.KeySets[n-1] != x.token) {
			p.KeySets = append(p.KeySets, x.token)
		}
		follows := it.order == nil && it.control == nil && len(about) > 0 && it.of == about[0]
		if !follows && (it.order == nil || it.order.decision.IntentID != id) {
			continue
		}
		about, p.Receipt = append(about, rec.Position), ""
		if it.outcome == nil {
			continue
		}
		r, key, there, err := x.receipt(ctx, it, digest)
		if err == nil && there {
			p.Receipt, err = intents.IssueReceipt(key, r)
		}
		if err != nil {
			return p, err
		}
	}
	if len(about) == 0 {
		return p, ErrNotFound
	}
	c, err := s.Ledger.Checkpoint(ctx, s.LedgerKey.VerificationKey())
	if err != nil {
		return p, err
	}
	for _, at := range about {
		in, err := s.Ledger.Inclusion(ctx, at, c)
		if err != nil {
			return p, err
		}
		p.Inclusion = append(p.Inclusion, in)
	}
	return p, nil
}

// Check verifies a proof by the root key that trust has pinned.
func (p Proof) Check(trust Trust) error {
	if p.Origin != trust.Origin {
		return errors.New("the proof is of another log than the pinned one")
	}
	var all []intents.Key
	known := map[string]intents.Key{}
	prev := ""
	for i, token := range p.KeySets {
		set, keys, err := intents.OpenKeySet(token, trust.public)
		if err != nil {
			return fmt.Errorf("key set %d: %w", i+1, err)
		}
		if set.Version != int64(i+1) || set.Prev != prev {
			return fmt.Errorf("key set %d does not follow on the one before", i+1)
		}
		prev = intents.Digest([]byte(token))
		for kid, k := range keys {
			all, known[kid] = append(all, k), k
		}
	}
	leaves, err := inLog(p.Origin, all, p.Inclusion)
	if err != nil || p.Receipt == "" {
		return err
	}
	r, err := intents.OpenReceipt(p.Receipt, intents.KeysFunc(func(kid string) (intents.Key, error) {
		if k, ok := known[kid]; ok {
			return k, nil
		}
		return intents.Key{}, intents.Refuse(intents.KeyUnknown, "", "no such key in the key sets")
	}))
	if err != nil {
		return fmt.Errorf("receipt: %w", err)
	}
	last := leaves[len(leaves)-1]
	if r.IntentID != p.IntentID || r.Position != leaves[0].Position || r.RecordDigest != leaves[0].RecordDigest || r.OutcomeDigest != last.RecordDigest {
		return errors.New("the receipt names other records")
	}
	return nil
}

// InLog checks that the records that a receipt names are in the log: the first proof is of the
// intent's, and the last one, if there are several, of its outcome's. inclusion is one proof, or an
// array of them. keys are those of the receipt's log.
func InLog(r intents.Receipt, keys []intents.Key, inclusion json.RawMessage) error {
	all := make([]ledger.Inclusion, 1)
	into := any(&all)
	if bytes.HasPrefix(inclusion, []byte("{")) {
		into = &all[0]
	}
	if err := json.Unmarshal(inclusion, into); err != nil {
		return err
	}
	leaves, err := inLog(r.Issuer, keys, all)
	if err != nil {
		return err
	}
	last := leaves[len(leaves)-1]
	if r.Position != leaves[0].Position || r.RecordDigest != leaves[0].RecordDigest || len(leaves) > 1 && r.OutcomeDigest != last.RecordDigest {
		return errors.New("the receipt names other records")
	}
	return nil
}

// inLog verifies proofs of inclusion, and returns their leaves.
func inLog(origin string, keys []intents.Key, all []ledger.Inclusion) (leaves []ledger.Leaf, err error) {
	if len(all) == 0 {
		return nil, errors.New("the proof proves nothing")
	}
	for _, in := range all {
		c, err := ledger.OpenCheckpoint(in.Note, origin, keys...)
		if err != nil {
			return nil, err
		}
		leaf, err := ledger.ParseLeaf([]byte(in.Leaf))
		if err != nil {
			return nil, err
		}
		if leaf.Position != in.Position || ledger.VerifyInclusion(c, in.Position, leaf.Hash(), in.Hashes) != nil {
			return nil, fmt.Errorf("record %d is not in the log of the checkpoint", in.Position)
		}
		leaves = append(leaves, leaf)
	}
	return leaves, nil
}
