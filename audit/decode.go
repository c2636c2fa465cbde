package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/ledger"
)

// item is one record or bare leaf of a bundle, taken apart. Nothing is verified yet.
type item struct {
	position int64
	entry    *Entry
	leaf     ledger.Leaf
	hash     []byte // of the leaf, in the tree
	proof    []byte // inclusion hashes, one after another
	out      bool   // of the log: the leaf is not in it at this position
	at       time.Time
	now      time.Time // that it was decided at; at, where the record does not say
	withheld bool      // at least one part is
	blind    bool      // so much is that what follows from the record is not known
	missing  *missing
	err      error

	order   *order
	outcome *intents.Outcome
	of      int64 // outcome, release, takeover: the order
	control *state.Control
	release *state.Release
}

// order is the content of an order record.
type order struct {
	sealed   intents.Sealed
	opened   *intents.Unverified
	body     intents.Body
	ctx      intents.Context
	decision intents.Decision
	facts    intents.Facts
	grant    string
	summary  *storage.Summary // nil: it has none, or it is not shown
}

// hidden: the order itself is withheld; body and ctx are its summary's.
func (o *order) hidden() bool { return o.opened == nil }

// kid of the signer.
func (o *order) kid() string {
	if o.hidden() {
		return o.facts.Signer.KID
	}
	return o.opened.KID()
}

// bareItem takes a leaf line apart.
func bareItem(b *Bare) *item {
	leaf, err := ledger.ParseLeaf([]byte(b.Leaf))
	it := &item{position: leaf.Position, leaf: leaf, hash: ledger.LeafHash([]byte(b.Leaf)), err: err}
	it.proof = b.Proof
	return it
}

// recordItem takes a record line apart. Its leaf is made from what the line
// holds, so whatever was changed in it is another leaf than the log's.
func recordItem(e *Entry) *item {
	it := &item{position: e.Position, entry: e, proof: e.Proof}
	digest, bodies, err := digestParts(e.Parts)
	if err == nil {
		if it.at, err = time.Parse(time.RFC3339Nano, e.At); err == nil && intents.FormatTime(it.at) != e.At {
			err = errors.New("time is not RFC 3339 in UTC with milliseconds")
		}
	}
	it.withheld = len(bodies) < len(e.Parts)
	it.leaf = ledger.Leaf{At: e.At, Kind: e.Kind, Position: e.Position, RecordDigest: digest, TenantTag: e.Tag, V: ledger.LeafVersion}
	it.hash = it.leaf.Hash()
	if err == nil {
		err = it.read(bodies)
	}
	it.err = err
	it.decidedAt()
	return it
}

// digestParts is the record digest (storage.Record.Digest) over parts of which
// some may be withheld, and the bytes of those that are there.
func digestParts(parts map[string]Part) (string, map[string][]byte, error) {
	sums := make(map[string]string, len(parts))
	bodies := make(map[string][]byte, len(parts))
	for name, p := range parts {
		body := p.Base64
		if p.Text != nil {
			body = []byte(*p.Text)
		}
		switch {
		case p.Digest != "" && (p.Text != nil || p.Base64 != nil || p.Salt != nil):
			return "", nil, fmt.Errorf("part %q is both there and withheld", name)
		case p.Text != nil && p.Base64 != nil:
			return "", nil, fmt.Errorf("part %q is there twice", name)
		case p.Digest != "":
			sums[name] = p.Digest
			continue
		case len(p.Salt) != hashSize:
			return "", nil, fmt.Errorf("part %q has no salt of 32 bytes", name)
		}
		sums[name] = partDigest(p.Salt, body)
		bodies[name] = body
	}
	digest, err := storage.DigestOf(sums)
	return digest, bodies, err
}

// partDigest is hex SHA-256(salt ‖ bytes).
func partDigest(salt, body []byte) string {
	var sum [hashSize]byte
	h := sha256.New()
	h.Write(salt) // never fails
	h.Write(body)
	return hex.EncodeToString(h.Sum(sum[:0]))
}

// read decodes the parts that the kind must have, and looks whether those that
// are withheld may be.
func (it *item) read(bodies map[string][]byte) error {
	if it.withheld {
		if err := it.mayMiss(bodies); err != nil {
			return err
		}
	}
	switch it.entry.Kind {
	case storage.KindOrder:
		switch {
		case it.blind:
			return nil
		case it.withheld:
			return it.readHidden(bodies)
		}
		return it.readOrder(bodies)
	case storage.KindOutcome:
		return it.readOutcome(bodies)
	case storage.KindRelease, storage.KindTakeover:
		part := string(it.entry.Kind)
		if bodies[part] == nil {
			return fmt.Errorf("part %q is missing", part)
		}
		var p struct {
			Of *int64 `json:"of"`
		}
		if err := json.Unmarshal(bodies[part], &p); err != nil || p.Of == nil {
			return fmt.Errorf("part %s names no order", part)
		}
		if it.entry.Kind == storage.KindRelease {
			var err error
			if it.release, err = readReleasePart(bodies[part]); err != nil {
				return err
			}
		}
		return it.about(*p.Of)
	case storage.KindControl:
		if bodies[storage.PartControl] == nil {
			return fmt.Errorf("part %q is missing", storage.PartControl)
		}
		it.control = new(state.Control)
		if err := json.Unmarshal(bodies[storage.PartControl], it.control); err != nil {
			return errors.New("part control is not one")
		}
		return nil
	default:
		return errors.New("unknown kind of record")
	}
}

func (it *item) about(of int64) error {
	if of < 0 {
		of = it.position - 1
	}
	if of < 0 || of >= it.position {
		return errors.New("is about an order that does not come before it")
	}
	it.of = of
	return nil
}

func (it *item) readOrder(bodies map[string][]byte) error {
	o := &order{}
	for _, part := range []struct {
		name string
		read func([]byte) error
	}{
		{storage.PartOrder, func(b []byte) (err error) { o.sealed, err = intents.ReadSealed(b); return err }},
		{storage.PartDecision, func(b []byte) (err error) { o.decision, err = intents.ReadDecision(b); return err }},
		{storage.PartFacts, func(b []byte) error { return json.Unmarshal(b, &o.facts) }},
	} {
		if err := part.read(bodies[part.name]); err != nil {
			return fmt.Errorf("part %q cannot be read", part.name)
		}
	}
	if raw, ok := bodies[storage.PartGrant]; ok {
		if err := json.Unmarshal(raw, &o.grant); err != nil {
			return errors.New("part grant is no string")
		}
	}
	if raw, ok := bodies[storage.PartSummary]; ok {
		s, err := storage.ReadSummary(map[string]json.RawMessage{storage.PartSummary: raw})
		if err != nil {
			return err
		}
		o.summary = &s
	}
	var err error
	if o.opened, err = o.sealed.Open(); err != nil {
		return fmt.Errorf("order: %w", err)
	}
	o.body = o.opened.Body()
	if o.body.Context != nil {
		o.ctx = *o.body.Context
	}
	// Everything that is remembered of an order is copied: else one string would
	// keep its whole line.
	o.decision.IntentID, o.decision.Effect = strings.Clone(o.decision.IntentID), strings.Clone(o.decision.Effect)
	it.order = o
	return nil
}

// readOutcome reads an outcome in one part or in several. What of it is withheld
// is not known.
func (it *item) readOutcome(bodies map[string][]byte) error {
	if bodies[storage.PartOutcome] == nil {
		return fmt.Errorf("part %q is missing", storage.PartOutcome)
	}
	parts := make(map[string]json.RawMessage, len(bodies))
	for name, body := range bodies {
		parts[name] = body
	}
	out, err := storage.ReadOutcome(parts)
	if err != nil {
		return errors.New("part outcome is not an outcome")
	}
	it.outcome = &out
	return it.about(out.Of)
}
