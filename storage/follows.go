package storage

import (
	"context"
	"encoding/hex"
	"encoding/json"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// Follows is what a record's parts say about its place in the journal. The record's
// leaf covers the parts. What a driver stores beside them is for speed only: the parts
// decide.
type Follows struct {
	Of      int64 // Nobody: it is about no other record
	Take    bool
	Open    bool
	Refused bool // an order that was denied
	Key     Key
	Keyed   bool // Key is proven: it does not rest on a part that was erased
}

// Follow reads it from a record. ok is false if a router does not write such parts.
func Follow(r Record) (f Follows, ok bool) {
	f.Of = Nobody
	switch r.Kind {
	case KindControl:
		return f, true
	case KindOrder:
		return f, f.order(r)
	case KindOutcome, KindRelease, KindTakeover:
		var about struct {
			Of *int64 `json:"of"`
		}
		if json.Unmarshal(r.Parts[string(r.Kind)], &about) != nil || about.Of == nil {
			return f, false
		}
		if f.Of = *about.Of; f.Of == Nobody {
			f.Of = r.Position - 1 // one commit with its order
		}
		return f, true
	default:
		return f, false
	}
}

// Settled says whether an outcome is another than indeterminate.
func Settled(r Record) bool {
	var out struct {
		Status intents.Status `json:"status"`
	}
	return json.Unmarshal(r.Parts[PartOutcome], &out) == nil && out.Status != intents.StatusIndetermined
}

// HolderOf reads from the records in which state an order is that was refused, or has
// ended: it reads on from the order up to its end. ErrNotFound: it is neither.
func HolderOf(ctx context.Context, records Records, position int64) (Holder, error) {
	h := Holder{Position: position, State: StateHeld, Outcome: Nobody}
	rec, err := records.Get(ctx, position)
	if err != nil {
		return h, err
	}
	f, ok := Follow(rec)
	switch {
	case !ok || rec.Kind != KindOrder:
		return h, ErrNotFound
	case f.Refused:
		return h, nil
	}
	for rec, err := range records.Scan(ctx, position+1) {
		if err != nil {
			return h, err
		}
		if f, _ := Follow(rec); rec.Kind == KindOutcome && f.Of == position {
			h.State, h.Outcome = StateDone, rec.Position
			return h, nil
		}
	}
	return h, ErrNotFound
}

// order: every order takes a key. A refusal takes that of its intent and code, so
// that it is recorded once.
func (f *Follows) order(r Record) bool {
	d, err := intents.ReadDecision(r.Parts[PartDecision])
	if err != nil || d.IntentID == "" {
		return false
	}
	f.Take = true
	switch d.Verdict {
	case intents.Deny:
		f.Refused, f.Key, f.Keyed = true, RefusalKey(d.IntentID, string(d.Code)), true
		return true
	case intents.Allow:
		f.Open = d.Executor != catalog.ExecutorRouter
	case intents.Hold:
	default:
		return false
	}
	f.Key, f.Keyed = keyOf(r, d)
	return true
}

// keyOf an accepted order: the decision's, else the order's own, else its summary's.
func keyOf(r Record, d intents.Decision) (Key, bool) {
	if d.Key != "" {
		return ParseKey(d.Key)
	}
	if _, there := r.Parts[PartOrder]; there {
		b, err := r.Body()
		if err != nil {
			return Key{}, false
		}
		return OrderKey(b.Actor.Tenant, b.Actor.UserID, b.Intent.Type, b.Constraints.IdempotencyKey), true
	}
	s, err := ReadSummary(r.Parts)
	if err != nil {
		return Key{}, false
	}
	return ParseKey(s.Key)
}

// ParseKey reads the hex of a key.
func ParseKey(text string) (k Key, ok bool) {
	n, err := hex.Decode(k[:], []byte(text[:min(len(text), 2*len(k))]))
	return k, err == nil && n == len(k) && len(text) == 2*len(k)
}

// String is the hex of a key.
func (k Key) String() string { return hex.EncodeToString(k[:]) }
