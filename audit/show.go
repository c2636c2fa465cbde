package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"

	"aob.dev/writ/intents"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/ledger"
)

// ErrNotFound reports that no intent with this intent_id is in the journal.
var ErrNotFound = errors.New("no such intent")

// RecordView is one record, opened for reading.
type RecordView struct {
	Position int64                      `json:"position"`
	Kind     storage.Kind               `json:"kind"`
	At       string                     `json:"at"`
	Tenant   string                     `json:"tenant"`
	IntentID string                     `json:"intent_id,omitempty"` // of an intent, as are the next four
	Type     string                     `json:"type,omitempty"`
	User     string                     `json:"user,omitempty"`
	Plan     string                     `json:"plan_id,omitempty"`
	Session  string                     `json:"session_id,omitempty"`
	Code     intents.Code               `json:"code,omitempty"`
	Target   *int64                     `json:"of,omitempty"` // the intent that it is about
	Digest   string                     `json:"record_digest"`
	Parts    map[string]json.RawMessage `json:"parts,omitempty"`
	Intent   *intents.Body              `json:"envelope,omitempty"` // what was signed; its summary, if that was erased
	Withheld map[string]string          `json:"withheld,omitempty"` // parts that were erased, and their digests
}

// Read opens the records of a journal from a position on.
func Read(ctx context.Context, records storage.Records, from int64) iter.Seq2[RecordView, error] {
	tenants := ledger.NewTenants(records)
	return func(yield func(RecordView, error) bool) {
		for rec, err := range records.Scan(ctx, from) {
			var s RecordView
			if err == nil {
				s, err = read(ctx, tenants, rec)
			}
			if !yield(s, err) || err != nil {
				return
			}
		}
	}
}

func read(ctx context.Context, tenants *ledger.Tenants, rec storage.Record) (RecordView, error) {
	s := RecordView{Position: rec.Position, Kind: rec.Kind, At: intents.FormatTime(rec.At), Digest: rec.Digest(), Parts: rec.Parts, Withheld: rec.Erased}
	it := ownItem(rec)
	var err error
	if s.Tenant, err = it.tenant(ctx, tenants); err != nil {
		return s, err
	}
	if it.err != nil {
		return s, fmt.Errorf("record %d: %w", rec.Position, it.err)
	}
	switch o := it.intent; {
	case o != nil:
		d := o.decision
		s.Intent, s.IntentID, s.Code, s.Type, s.User = &o.body, d.IntentID, d.Code, o.body.Intent.Type, o.body.Actor.UserID
		s.Plan, s.Session = o.ctx.PlanID, o.ctx.SessionID
	case it.control != nil || it.Kind == storage.KindIntent:
	case it.outcome != nil:
		s.Code = it.outcome.Code
		fallthrough
	default:
		s.Target = &it.target
	}
	return s, nil
}

// Find reads everything about an intent: its own record, and the records about it.
func Find(ctx context.Context, records storage.Records, id string) ([]RecordView, error) {
	tenants := ledger.NewTenants(records)
	var out []RecordView
	for rec, err := range records.Scan(ctx, 0) {
		if err != nil {
			return nil, err
		}
		if len(out) == 0 && rec.Kind != storage.KindIntent {
			continue
		}
		s, err := read(ctx, tenants, rec)
		if err != nil {
			return nil, err
		}
		if s.IntentID == id || (len(out) > 0 && s.Target != nil && *s.Target == out[0].Position) {
			out = append(out, s)
		}
	}
	if len(out) == 0 {
		return nil, ErrNotFound
	}
	return out, nil
}

// Proof of one intent: that its records are in the log, and the router's receipt
// for them. With a pinned root key nothing else is needed; the parts of the
// records are not in it.
type Proof struct {
	Origin    string             `json:"origin"`
	IntentID  string             `json:"intent_id"`
	Receipt   string             `json:"receipt,omitempty"`
	KeySets   []string           `json:"key_sets"` // signed by the root key, oldest first
	Inclusion []ledger.Inclusion `json:"inclusion"`
}

// Prove returns the proof of one intent. A record that is in no checkpoint yet gives ledger.ErrPending.
func Prove(ctx context.Context, s Source, id string) (Proof, error) {
	p := Proof{Origin: s.Origin, IntentID: id}
	f := newApplier()
	f.origin = s.Origin
	var r intents.Receipt
	var about []int64 // the intent, and the records about it
	for rec, err := range s.Records.Scan(ctx, 0) {
		if err != nil {
			return p, err
		}
		it := ownItem(rec)
		if _, err := f.believe(it); err != nil {
			return p, err
		}
		if len(p.KeySets) < len(f.sets) {
			p.KeySets = append(p.KeySets, f.state.JWKS().KeySet)
		}
		follows := it.intent == nil && it.control == nil && len(about) > 0 && it.target == about[0]
		if !follows && (it.intent == nil || it.intent.decision.IntentID != id) {
			continue
		}
		about, p.Receipt = append(about, rec.Position), ""
		switch {
		case it.intent != nil:
			r = intents.Receipt{
				Issuer: s.Origin, IntentID: id, Position: it.Position, PolicyDigest: it.intent.decision.PolicyDigest,
				RecordDigest: rec.Digest(), WithinSec: intents.PromiseSeconds,
			}
		case it.outcome != nil:
			r.Code, r.OutcomeDigest = it.outcome.Code, rec.Digest()
			if p.Receipt, err = f.receipt(s.RouterKeys, r); err != nil {
				return p, err
			}
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

// receipt is what a router signed for the submitter, by its key in force; empty where that key is not here.
func (f *applier) receipt(keys []intents.Signer, r intents.Receipt) (string, error) {
	at := slices.IndexFunc(keys, func(k intents.Signer) bool {
		known, ok := f.keys.keys[k.KID]
		return ok && !known.Revoked
	})
	if at < 0 {
		return "", nil
	}
	return intents.IssueReceipt(keys[at], r)
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
