package storage

import (
	"context"
	"encoding/hex"
	"encoding/json"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// Follows is the place of a record in the journal, read from its parts. The record's
// leaf covers the parts. A driver's copy of it is for speed only: the parts
// decide.
type Follows struct {
	Target  int64 // Nobody: it has no other record as target
	Take    bool
	Open    bool
	Refused bool // an intent that was denied
	Key     Key
	Keyed   bool // Key is known
}

// Follow reads it from a record. ok is false if a router does not write such parts.
func Follow(r Record) (f Follows, ok bool) {
	f.Target = NoPosition
	switch r.Kind {
	case KindControl:
		return f, true
	case KindIntent:
		return f, f.intent(r)
	case KindOutcome, KindRelease, KindTakeover:
		var about struct {
			Target *int64 `json:"of"`
		}
		if json.Unmarshal(r.Parts[string(r.Kind)], &about) != nil || about.Target == nil {
			return f, false
		}
		f.Target = r.about(about.Target)
		return f, true
	default:
		return f, false
	}
}

// about is the position of the intent that a record says it is about.
func (r Record) about(of *int64) int64 {
	switch {
	case of == nil:
		return NoPosition
	case *of == NoPosition:
		return r.Position - 1 // one commit with its intent
	default:
		return *of
	}
}

// Determinate reports whether an outcome is another than indeterminate.
func Determinate(r Record) bool {
	var out struct {
		Status intents.Status `json:"status"`
	}
	return json.Unmarshal(r.Parts[PartOutcome], &out) == nil && out.Status != intents.StatusIndetermined
}

// HolderOf reads the state of an intent from the records, if it was refused or has
// ended: it reads from the intent to its end. ErrNotFound: it is neither.
func HolderOf(ctx context.Context, records Records, position int64) (Holder, error) {
	h := Holder{Position: position, State: StateHeld, Outcome: NoPosition}
	rec, err := records.Get(ctx, position)
	if err != nil {
		return h, err
	}
	f, ok := Follow(rec)
	switch {
	case !ok || rec.Kind != KindIntent:
		return h, ErrNotFound
	case f.Refused:
		return h, nil
	}
	for rec, err := range records.Scan(ctx, position+1) {
		if err != nil {
			return h, err
		}
		if f, _ := Follow(rec); rec.Kind == KindOutcome && f.Target == position {
			h.State, h.Outcome = StateDone, rec.Position
			return h, nil
		}
	}
	return h, ErrNotFound
}

// intent reads an intent: each takes a key. A refusal takes that of its intent_id and code, so
// that it is recorded once.
func (f *Follows) intent(r Record) bool {
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
	f.Key, f.Keyed = ParseKey(d.Key)
	return true
}

// ParseKey reads the hex of a key.
func ParseKey(text string) (k Key, ok bool) {
	n, err := hex.Decode(k[:], []byte(text[:min(len(text), 2*len(k))]))
	return k, err == nil && n == len(k) && len(text) == 2*len(k)
}

// String is the hex of a key.
func (k Key) String() string { return hex.EncodeToString(k[:]) }
