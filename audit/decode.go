package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/ledger"
)

// item is a record, as far as it is shown, or a bare leaf. Nothing is verified yet.
type item struct {
	storage.Record
	bare    bool        // only the leaf and the position are here
	leaf    ledger.Leaf // of a bundle's line
	hash    []byte      // of the leaf, in the tree
	now     time.Time   // that it was decided at; At, where the record does not say
	blind   bool        // so much is withheld that what follows from the record is not known
	missing *missing
	err     error

	intent  *intent
	outcome *intents.Outcome
	target  int64 // outcome, release, takeover: the intent
	control *state.Control
	genesis *state.Genesis // of control
	release *state.Release
}

// intent is the content of an intent's record.
type intent struct {
	signed   intents.Signed
	opened   *intents.Unverified
	body     intents.Body
	ctx      intents.Context
	decision intents.Decision
	inputs   intents.DecisionInputs
	grant    string
	summary  *storage.Summary // nil: it has none, or it is not shown
}

// hidden: the envelope is withheld; body and ctx are its summary's.
func (o *intent) hidden() bool { return o.opened == nil }

// kid of the signer.
func (o *intent) kid() string {
	if o.hidden() {
		return o.inputs.Signer.KID
	}
	return o.opened.KID()
}

// bareItem is a leaf line.
func bareItem(leaf ledger.Leaf) *item {
	return &item{Record: storage.Record{Position: leaf.Position}, bare: true, leaf: leaf, hash: leaf.Hash()}
}

// recordItem reads a record line. Its leaf is made from what the line holds, so
// whatever was changed in it gives another leaf than the log's.
func recordItem(e *Entry) *item {
	rec, err := e.record()
	it := ownItem(rec)
	it.leaf = ledger.NewLeaf(rec, e.Tag)
	it.hash = it.leaf.Hash()
	if err != nil {
		it.err = err
	}
	return it
}

// ownItem reads a record of one's own journal, which has no line with its leaf.
func ownItem(rec storage.Record) *item {
	it := &item{Record: rec}
	it.err = it.read()
	it.decidedAt()
	return it
}

// record is what a line holds of a record.
func (e *Entry) record() (storage.Record, error) {
	rec := storage.Record{Position: e.Position, Kind: e.Kind, Parts: make(map[string]json.RawMessage, len(e.Parts)), Salts: make(map[string][]byte, len(e.Parts))}
	var err error
	if rec.At, err = time.Parse(time.RFC3339Nano, e.At); err != nil || intents.FormatTime(rec.At) != e.At {
		return rec, errors.New("time is not RFC 3339 in UTC with milliseconds")
	}
	for name, p := range e.Parts {
		switch {
		case p.Digest != "" && (p.Text != nil || p.Base64 != nil || p.Salt != nil):
			return rec, fmt.Errorf("part %q is both there and withheld", name)
		case p.Text != nil && p.Base64 != nil:
			return rec, fmt.Errorf("part %q is there twice", name)
		case p.Digest != "":
			if rec.Erased == nil {
				rec.Erased = map[string]string{}
			}
			rec.Erased[name] = p.Digest
			continue
		case len(p.Salt) != hashSize:
			return rec, fmt.Errorf("part %q has no salt of 32 bytes", name)
		}
		rec.Parts[name], rec.Salts[name] = p.Base64, p.Salt
		if p.Text != nil {
			rec.Parts[name] = []byte(*p.Text) // no copy
		}
	}
	return rec, nil
}

// tenant returns the tenant of the record. An envelope that was read is not read again.
func (it *item) tenant(ctx context.Context, known *ledger.Tenants) (string, error) {
	if it.intent == nil || it.err != nil {
		return known.Tenant(ctx, it.Record)
	}
	tenant := strings.Clone(it.intent.body.Actor.Tenant)
	known.Note(it.Position, tenant)
	return tenant, nil
}

// withheld reports whether at least one part is, besides the texts that came with an intent.
func (it *item) withheld() bool {
	_, transient := it.Erased[storage.PartTransient]
	return len(it.Erased) > 1 || len(it.Erased) == 1 && !transient
}

// read decodes the parts that the kind must have, and checks that those that are
// withheld may be.
func (it *item) read() error {
	if len(it.Erased) > 0 {
		if err := it.mayMiss(); err != nil {
			return err
		}
	}
	switch it.Kind {
	case storage.KindIntent:
		switch {
		case it.blind:
			return nil
		case it.withheld():
			return it.readHidden()
		}
		return it.readIntent()
	case storage.KindOutcome: // of what is withheld of it nothing is known
		out, f, ok, err := storage.FollowOutcome(it.Record)
		if err != nil {
			return errors.New("part outcome is not an outcome")
		}
		it.outcome = &out
		return it.isAbout(f, ok)
	case storage.KindRelease:
		rel, err := state.ReleaseOf(it.Record)
		if err != nil {
			return errors.New("part release is not one")
		}
		it.release = &rel
	case storage.KindTakeover:
	case storage.KindControl:
		return it.readControl()
	default:
		return errors.New("unknown kind of record")
	}
	return it.isAbout(storage.Follow(it.Record))
}

// isAbout takes the intent that the record is about.
func (it *item) isAbout(f storage.Follows, ok bool) error {
	if it.target = f.Target; !ok || it.target < 0 || it.target >= it.Position {
		return errors.New("is about no intent that comes before it")
	}
	return nil
}

func (it *item) readControl() error {
	it.control = new(state.Control)
	if err := json.Unmarshal(it.Parts[storage.PartControl], it.control); err != nil {
		return errors.New("part control is not one")
	}
	if it.control.Genesis == nil {
		return nil
	}
	g, err := state.OpenGenesis(*it.control.Genesis)
	it.genesis = &g
	return err
}

func (it *item) readIntent() error {
	o := &intent{}
	for _, part := range []struct {
		name string
		read func([]byte) error
	}{
		{storage.PartEnvelope, func(b []byte) (err error) { o.signed, err = intents.ReadSigned(b); return err }},
		{storage.PartDecision, func(b []byte) (err error) { o.decision, err = intents.ReadDecision(b); return err }},
		{storage.PartInputs, func(b []byte) (err error) { o.inputs, err = intents.ReadInputs(b); return err }},
	} {
		if err := part.read(it.Parts[part.name]); err != nil {
			return fmt.Errorf("part %q cannot be read", part.name)
		}
	}
	if raw, ok := it.Parts[storage.PartGrant]; ok {
		var err error
		if o.grant, err = storage.ReadGrant(raw); err != nil {
			return errors.New("part grant is no string")
		}
	}
	if _, ok := it.Parts[storage.PartSummary]; ok {
		s, err := storage.ReadSummary(it.Parts)
		if err != nil {
			return err
		}
		o.summary = &s
	}
	var err error
	if o.opened, err = o.signed.Open(); err != nil {
		return fmt.Errorf("intent: %w", err)
	}
	o.body = o.opened.Body()
	if o.body.Context != nil {
		o.ctx = *o.body.Context
	}
	it.has(o)
	return nil
}

// readHidden reads an intent's record whose envelope is not shown.
func (it *item) readHidden() error {
	o := &intent{}
	s, err := storage.ReadSummary(it.Parts)
	if err == nil {
		o.decision, err = intents.ReadDecision(it.Parts[storage.PartDecision])
	}
	if err == nil {
		o.inputs, err = intents.ReadInputs(it.Parts[storage.PartInputs])
	}
	if err != nil {
		return errors.New("decision, facts or summary of a withheld intent cannot be read")
	}
	o.body, o.ctx, o.summary = s.Body(), s.Context, &s
	it.has(o)
	return nil
}

// has sets the intent. Everything retained of it is copied: else one string
// would keep its whole line.
func (it *item) has(o *intent) {
	o.decision.IntentID, o.decision.Effect = strings.Clone(o.decision.IntentID), strings.Clone(o.decision.Effect)
	it.intent = o
}

// registry is the digest of the agents that a record puts in force, if they are stored as blobs; else empty.
func (it *item) registry() string {
	o := it.intent
	if o == nil || o.decision.Verdict == intents.Deny || o.body.Intent.Type != state.TypeRegistryPush || len(o.inputs.Scopes) == 0 {
		return ""
	}
	if a, err := unmarshal[catalog.RegistryPush](o.body.Intent.Args); err == nil && a.Bundle == "" {
		return a.Digest
	}
	return ""
}

// versions are the policy and the catalog that a record puts in force or that decided.
func (it *item) versions() (policy, catalog string) {
	switch {
	case it.genesis != nil:
		return it.genesis.Policy, it.genesis.Catalog
	case it.control != nil:
		return it.control.Policy, it.control.Catalog
	case it.intent != nil:
		return it.intent.decision.PolicyDigest, it.intent.decision.Catalog
	case it.release != nil:
		return it.release.Decision.PolicyDigest, it.release.Decision.Catalog
	default:
		return "", ""
	}
}
