package storage

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"time"

	"aob.dev/writ/intents"
)

// Parts that are separate so that they, or their siblings, can be erased.
const (
	PartSummary = "summary" // of an intent: read in place of the envelope once that is erased
	PartResult  = "result"  // of an outcome: its result
	PartReason  = "reason"  // of an outcome: the text of its executor
	PartLines   = "lines"   // of an outcome: what was written while the intent was carried out
	PartReplay  = "replay"  // of a run.replay: inputs and outputs of the run that it repeats
	PartOutputs = "outputs" // of the outcome of a node's intent: what later nodes read of it

	// PartTransient are the texts beside an intent (intents.Transient). It has a key of its own, which
	// is destroyed when the plan has ended, whatever happens to other parts.
	PartTransient = "transient"
)

// ErasedReason is the reason of an outcome whose result or reason was erased.
const ErasedReason = "erased by an operator"

// Summary is the part of an intent that state and projections need after an erasure. It holds
// names and ids, neither labels nor texts, and of the arguments only those that the state
// needs.
type Summary struct {
	Type    string          `json:"type"`
	Tenant  string          `json:"tenant"`
	User    string          `json:"user"`
	Context intents.Context `json:"context"`
	PlanID  string          `json:"plan_id,omitempty"` // named by the arguments of an accepted intent
	// Args are the arguments that the state retains of a router intent, canonical.
	Args json.RawMessage `json:"args,omitempty"`
}

// SummaryOf returns the summary of an intent. Arguments of a refused intent may be anything, and are not read.
func SummaryOf(e *intents.Envelope, verdict intents.Verdict) Summary {
	pr := e.Principal()
	s := Summary{Type: e.Type(), Tenant: pr.Tenant, User: pr.UserID, Context: e.Context()}
	s.Context.Labels = nil
	if verdict != intents.Deny {
		s.PlanID = e.StringArg("plan_id")
	}
	return s
}

// ReadSummary reads the part "summary".
func ReadSummary(parts map[string]json.RawMessage) (Summary, error) {
	s, err := intents.ReadPart(parts[PartSummary], func(c *intents.Cursor, s *Summary) {
		c.Members("type", &s.Type, "tenant", &s.Tenant, "user", &s.User, "context", func() { s.Context.Read(c) }, "plan_id", &s.PlanID, "args", &s.Args)
	})
	if err != nil || s.Type == "" || s.Tenant == "" {
		return s, errors.New("the part summary is not one")
	}
	if s.Args != nil {
		s.Args, err = intents.Canonical(s.Args)
	}
	return s, err
}

// Body reads the body from an intent's record: from the envelope or, once that is
// erased, from its summary.
func (r Record) Body() (intents.Body, error) {
	if _, erased := r.Erased[PartEnvelope]; erased {
		s, err := ReadSummary(r.Parts)
		return s.Body(), err
	}
	signed, err := intents.ReadSigned(r.Parts[PartEnvelope])
	if err != nil {
		return intents.Body{}, err
	}
	return signed.Body()
}

// Body returns the body, as far as the summary has it.
func (s Summary) Body() intents.Body {
	var b intents.Body
	b.Intent.Type, b.Actor.Tenant, b.Actor.UserID, b.Context = s.Type, s.Tenant, s.User, &s.Context
	b.Intent.Args = json.RawMessage(`{}`)
	if s.Args != nil {
		b.Intent.Args = s.Args
	} else if raw, err := json.Marshal(map[string]string{"plan_id": s.PlanID}); err == nil && s.PlanID != "" {
		b.Intent.Args = raw
	}
	return b
}

// RecordOf is a record with one part, which has the name of its kind.
func RecordOf(kind Kind, at time.Time, content any) (Record, error) {
	body, err := json.Marshal(content)
	return NewRecord(kind, at, map[string]json.RawMessage{string(kind): body}), err
}

// OutcomeRecord is the record of an outcome that an executor reported: result, reason and
// lines are separate parts. Events, which never contain values of the data, stay in
// the outcome, and so does the reason of a contract violation, which names none: plans
// retain it.
func OutcomeRecord(at time.Time, out intents.Outcome) (Record, error) {
	parts := make(map[string]json.RawMessage, 2)
	var err error
	put := func(name string, v any) {
		if err == nil {
			parts[name], err = json.Marshal(v)
		}
	}
	if out.Reason != "" && out.Code != intents.ContractViolation {
		put(PartReason, out.Reason)
		out.Reason = ""
	}
	if out.Result != nil {
		put(PartResult, out.Result)
		out.Result = nil
	}
	if len(out.Lines) > 0 {
		put(PartLines, out.Lines)
	}
	if out.Outputs != nil {
		put(PartOutputs, out.Outputs)
		out.Outputs = nil
	}
	put(PartOutcome, out)
	return NewRecord(KindOutcome, at, parts), err
}

// ReadOutcome reads the outcome of a record's parts.
func ReadOutcome(parts map[string]json.RawMessage) (intents.Outcome, error) {
	out, _, err := readOutcome(parts)
	return out, err
}

// FollowOutcome is ReadOutcome and Follow of an outcome's record. ok is false if it does not say
// which intent it ends.
func FollowOutcome(r Record) (out intents.Outcome, f Follows, ok bool, err error) {
	out, of, err := readOutcome(r.Parts)
	return out, Follows{Target: r.about(of)}, of != nil, err
}

// readOutcome returns also which intent the outcome ends, if it says so.
func readOutcome(parts map[string]json.RawMessage) (out intents.Outcome, of *int64, err error) {
	type outcome struct {
		intents.Outcome
		Target *int64 `json:"of"`
	}
	part, err := intents.ReadPart(parts[PartOutcome], func(c *intents.Cursor, o *outcome) {
		c.Members("of", func() { o.Target = new(c.Count()) }, "attempt", &o.Attempt, "status", (*string)(&o.Status), "code", (*string)(&o.Code),
			"retryable", &o.Retryable, "duration_ms", &o.MS)
	})
	if out, of = part.Outcome, part.Target; of != nil {
		out.Target = *of
	}
	if err != nil {
		return out, of, err
	}
	if out.Result != nil || out.Outputs != nil {
		return out, of, errors.New("the part outcome has a result: the log is of an older form, so begin a new data directory")
	}
	if raw, there := parts[PartResult]; there {
		out.Result = raw
	}
	if raw, there := parts[PartOutputs]; there {
		out.Outputs = raw
	}
	if raw, there := parts[PartReason]; there {
		err = json.Unmarshal(raw, &out.Reason)
	}
	return out, of, err
}

// ReadGrant reads the part "grant": a token.
func ReadGrant(part []byte) (token string, err error) {
	c := intents.ReadCanonical(string(part))
	if token = c.Text(); c.Done() {
		return token, nil
	}
	return token, json.Unmarshal(part, &token)
}

// Lines returns what was written while the intent of an outcome was carried out; none if erased.
func (r Record) Lines() (lines []intents.Line, err error) {
	if raw, there := r.Parts[PartLines]; there {
		err = json.Unmarshal(raw, &lines)
	}
	return lines, err
}

// Outcome of an outcome's record. ErasedReason is the reason if something was erased.
func (r Record) Outcome() (intents.Outcome, error) {
	out, err := ReadOutcome(r.Parts)
	_, result := r.Erased[PartResult]
	_, reason := r.Erased[PartReason]
	if result || reason {
		out.Reason = ErasedReason
	}
	return out, err
}

// ErasableParts are the parts of a record that can be erased, by its kind.
var ErasableParts = map[Kind][]string{
	KindIntent:  {PartEnvelope, PartGrant, PartReplay},
	KindOutcome: {PartLines, PartOutputs, PartReason, PartResult},
}

// Erasable returns the names of those that this record has, sorted. An intent that later
// records rest on has none: one without a summary, and one that was held.
func (r Record) Erasable() (names []string) {
	if r.Kind == KindIntent {
		var d struct {
			Verdict intents.Verdict `json:"verdict"`
		}
		_, summary := r.Parts[PartSummary]
		if !summary || json.Unmarshal(r.Parts[PartDecision], &d) != nil || d.Verdict == intents.Hold {
			return nil
		}
	}
	for _, name := range ErasableParts[r.Kind] {
		if _, there := r.Parts[name]; there {
			names = append(names, name)
		}
	}
	return names
}

// Eraser is a journal that can erase parts of its records. A driver encrypts the erasable parts
// of a record, with their salts, under a random key that it uses for nothing else, and
// erases them by destroying the key. PartTransient is encrypted in the same way, under another one.
type Eraser interface {
	// Erase destroys the keys of records: what Erasable returns for them is replaced by part
	// digests for all later readers. The records retain position, kind, time and digest. A
	// record that was erased before, or has no such parts, is left as it is.
	// ErrNotFound where there is no such record; then, and with any other error,
	// some of the records may be erased: repeating the call is safe.
	//
	// Durability: when Erase returns without error, even if it found nothing
	// to erase, no file of the journal itself has the keys any more,
	// nor after a power cut. Copies of the keys
	// that others made (key copies, snapshots of the disk), and blocks that a file
	// system or a drive retains of overwritten data, are not reached.
	Erase(ctx context.Context, positions ...int64) error
	// EraseTransient is Erase for PartTransient of the records.
	EraseTransient(ctx context.Context, positions ...int64) error
}

// PartDigest is hex SHA-256(salt ‖ part bytes), as Record.Digest takes it.
func PartDigest(salt, body []byte) string {
	sum := PartSum(salt, body)
	return hex.EncodeToString(sum[:])
}

// PartSum is PartDigest before it is hex.
func PartSum(salt, body []byte) (sum [sha256.Size]byte) {
	h := sha256.New()
	h.Write(salt) // never fails
	h.Write(body)
	h.Sum(sum[:0])
	return sum
}

// Without is the record after the erasure of some of its parts; changed is false
// where it has none of them. The record itself is left as it is.
func (r Record) Without(parts ...string) (erased Record, changed bool) {
	for _, name := range parts {
		body, there := r.Parts[name]
		if !there {
			continue
		}
		if !changed {
			r.Parts, r.Salts, r.Erased = maps.Clone(r.Parts), maps.Clone(r.Salts), maps.Clone(r.Erased)
			if r.Erased == nil {
				r.Erased = make(map[string]string)
			}
			changed = true
		}
		r.Erased[name] = PartDigest(r.Salts[name], body)
		delete(r.Parts, name)
		delete(r.Salts, name)
	}
	return r, changed
}
