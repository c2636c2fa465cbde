package audit

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/ledger"
)

// Health is what a check of a data directory found; scripts depend on it.
type Health struct {
	OK       bool  `json:"ok"`
	Records  int64 `json:"records"`
	Leaves   int64 `json:"leaves"` // of the published checkpoint
	Pending  int64 `json:"pending"`
	Blobs    int64 `json:"blobs"`     // that records rest on, each once
	FirstBad *Bad  `json:"first_bad"` // position -1: no record, but the directory
	// Projections counts documents that were rebuilt and compared; Behind those
	// that the recorder still has to write. Not compared while a process uses the
	// directory.
	Compared    bool    `json:"compared"`
	Projections int64   `json:"projections"`
	Behind      int64   `json:"behind"`
	Seconds     float64 `json:"seconds"`

	// Unexplained are the intents with erased parts that no erasure names.
	Unexplained []Unexplained `json:"unexplained,omitempty"`

	// SetAside are positions of records of which something cannot be projected: documents lack
	// it, and the record is sound.
	SetAside []int64 `json:"set_aside,omitempty"`

	ClockSteps int64 `json:"clock_steps,omitempty"` // see Report
}

// Unexplained is an intent that has lost parts, or whose outcome has, without an erasure.
type Unexplained struct {
	Position int64    `json:"position"` // of the intent
	IntentID string   `json:"intent_id"`
	Tenant   string   `json:"tenant"`
	Parts    []string `json:"parts"` // as a record.erase names them; transient: the texts beside it
	Do       string   `json:"do"`    // the command that signs the erasure, or what explains the loss of texts
}

// Advice says what to do, for people.
func (u Unexplained) Advice() string {
	if slices.Equal(u.Parts, []string{storage.PartTransient}) {
		return u.Do
	}
	return "writ takes no intent before an operator has signed its erasure again: " + u.Do
}

// unexplainedIntents are those of a whole journal, in order.
func (f *applier) unexplainedIntents() (all []Unexplained) {
	f.explainEnded()
	for _, at := range slices.Sorted(maps.Keys(f.lacking)) {
		u := Unexplained{Position: at}
		texts := false
		for _, m := range f.lacking[at] {
			u.IntentID, u.Tenant = m.intentID, m.tenant
			texts = texts || slices.Contains(m.parts, storage.PartTransient)
			for name, parts := range state.ErasedParts[m.kind] {
				if slices.ContainsFunc(m.parts, func(part string) bool { return slices.Contains(parts, part) }) {
					u.Parts = append(u.Parts, name)
				}
			}
		}
		u.Do = catalog.RecordErase{Tenant: u.Tenant, IntentID: u.IntentID, Position: at, Parts: u.Parts}.Command()
		if len(u.Parts) == 0 {
			u.Do = "start writ: it ends the plan, which had ended after this copy was made"
		}
		if texts {
			u.Parts = append(u.Parts, storage.PartTransient)
		}
		all = append(all, u)
	}
	return all
}

// OnlyUnexplained reports that nothing is wrong but erasures that the log does not have: an
// operator signs them again.
func (h Health) OnlyUnexplained() bool {
	return h.FirstBad != nil && slices.ContainsFunc(h.Unexplained, func(u Unexplained) bool { return u.Position == h.FirstBad.Position })
}

// Fsck reads a whole data directory and reports the first fault:
// the journal (positions without gaps, records that can be read, outcomes of
// intents that were open), the ledger (every leaf its record's, tiles and root by
// Tessera's own judge), and the blobs that records depend on. It writes nothing. The
// error is the context's or the reader's; a fault is no error. progress,
// if not nil, is called with the number of records read and of all.
func Fsck(ctx context.Context, s Source, keys []intents.Key, progress func(done, total int64)) (Health, error) {
	x := &checker{Source: s, tenants: ledger.NewTenants(s.Records), applier: newApplier(), checked: map[string]bool{}, named: map[int64]naming{}, progress: progress}
	x.applier.origin, x.applier.content = s.Origin, func(digest string) ([]byte, error) { return fetch(ctx, s.Blobs, digest) }
	bad := x.run(ctx, keys)
	if err := ctx.Err(); err != nil {
		return x.found, err
	}
	if bad != nil {
		var at *Bad
		if !errors.As(bad, &at) {
			at = &Bad{-1, "", bad.Error()}
		}
		x.found.FirstBad = at
	}
	x.found.OK, x.found.ClockSteps = bad == nil, x.applier.steps
	return x.found, nil
}

type checker struct {
	Source
	tenants     *ledger.Tenants
	applier     *applier
	judge       *ledger.Judge
	checked     map[string]bool  // blobs, by tenant and digest
	named       map[int64]naming // by open intents, by position
	absentBlobs []absentBlob     // that records rest on
	found       Health
	progress    func(done, total int64)
}

// naming are the blobs that an intent names as its inputs.
type naming struct {
	id   string
	user string // of an intent that a user.erase takes, "tenant/user_id"
	refs []string
}

// absentBlob is the fault of a blob that is not there; its user is naming's.
type absentBlob struct {
	bad  *Bad
	user string
}

func (x *checker) run(ctx context.Context, keys []intents.Key) error {
	c, err := x.Ledger.Fsck(ctx, keys...)
	if err != nil {
		return err
	}
	x.found.Leaves, x.judge = c.Size, x.Ledger.Judge(c)
	if live, ok := x.Records.(interface{ Reach(context.Context) error }); ok && c.Size > x.Records.Next() { // a node wrote on meanwhile
		if err := live.Reach(ctx); err != nil {
			return err
		}
	}
	if next := x.Records.Next(); c.Size > next {
		return fmt.Errorf("the ledger has %d leaves, the journal %d records: the journal was put back from an older copy", c.Size, next)
	}
	next := int64(0)
	for rec, err := range x.Records.Scan(ctx, 0) {
		if errors.As(err, new(*Bad)) {
			return err
		}
		if err != nil {
			return &Bad{next, "", err.Error()}
		}
		if rec.Position != next {
			return &Bad{next, "", fmt.Sprintf("the journal has no record here; the next one is %d", rec.Position)}
		}
		next++
		if err := x.record(ctx, rec, c.Size); err != nil {
			return &Bad{rec.Position, "", err.Error()}
		}
		x.found.Records = next
		if x.progress != nil && next%1000 == 0 {
			x.progress(next, x.Records.Next())
		}
	}
	if err := x.lost(); err != nil {
		return err
	}
	if next != x.Records.Next() {
		return &Bad{next, "", fmt.Sprintf("the journal ends here, and should have %d records", x.Records.Next())}
	}
	x.found.Pending = next - c.Size
	return nil
}

// record holds one to its leaf, to the records before it, and to its blobs.
func (x *checker) record(ctx context.Context, rec storage.Record, size int64) error {
	for name := range rec.Parts {
		if len(rec.Salts[name]) != hashSize {
			return fmt.Errorf("part %q has no salt of 32 bytes", name)
		}
	}
	it := ownItem(rec)
	tenant, err := it.tenant(ctx, x.tenants)
	if err != nil {
		return err
	}
	if rec.Position < size {
		if err := x.leaf(ctx, rec, tenant); err != nil {
			return err
		}
	}
	if it.err != nil {
		return it.err
	}
	j, err := x.applier.take(it)
	if err = cmp.Or(err, j.unfit); err != nil {
		return err
	}
	return x.restsOn(ctx, it, tenant)
}

func (x *checker) leaf(ctx context.Context, rec storage.Record, tenant string) error {
	leaf, err := x.judge.Leaf(ctx, rec.Position)
	if err != nil {
		return err
	}
	tag, err := x.Tags.Tag(tenant)
	if err != nil {
		return err
	}
	if !bytes.Equal(ledger.NewLeaf(rec, tag).Bytes(), leaf) {
		return errors.New("its leaf in the ledger is not the commitment to it: the record was changed, or belongs to another log")
	}
	return nil
}

// restsOn looks for the blobs that a record depends on: what decided, the questions to
// people, and the inputs of an intent that is done. One that is only named need not
// exist: it may be removed, or never have existed, as its intent was answered.
func (x *checker) restsOn(ctx context.Context, it *item, tenant string) error {
	policy, types := it.versions()
	if err := errors.Join(x.versions(ctx, policy, types), x.listed(ctx, it.registry())); err != nil {
		return err
	}
	switch o := it.intent; {
	case it.outcome != nil:
		named := x.named[it.target]
		delete(x.named, it.target)
		if it.outcome.Status != intents.Done {
			return nil
		}
		return x.checkBlobs(ctx, it.target, tenant, named)
	case o == nil || o.decision.Verdict == intents.Deny:
		return nil // it may name anything
	case o.decision.Verdict == intents.Hold:
		kept := naming{id: o.id()}
		for _, in := range o.inputs.Inputs {
			kept.refs = append(kept.refs, in.Ref)
		}
		return x.checkBlobs(ctx, it.Position, tenant, kept)
	default:
		row, _ := catalog.Builtin().Lookup(o.body.Intent.Type)
		inputs, _ := catalog.InputsOf(row, o.body.Intent.Args) // of arguments that were erased: none
		n := naming{id: o.id(), user: tenant + "/" + o.body.Actor.UserID}
		for _, in := range inputs {
			if strings.HasPrefix(in.Ref, "cas://") {
				n.refs = append(n.refs, in.Ref)
			}
		}
		if len(n.refs) > 0 {
			x.named[it.Position] = n
		}
		return nil
	}
}

// checkBlobs looks for the blobs among the references of an intent.
func (x *checker) checkBlobs(ctx context.Context, position int64, tenant string, n naming) error {
	for _, ref := range n.refs {
		digest, is := strings.CutPrefix(ref, "cas://")
		if !is || !intents.IsDigest(digest) {
			continue
		}
		_, err := x.blob(ctx, tenant, digest)
		if errors.Is(err, storage.ErrNotFound) {
			x.absentBlobs = append(x.absentBlobs, absentBlob{&Bad{position, n.id, err.Error()}, n.user})
		} else if err != nil {
			return err
		}
	}
	return nil
}

// lost is the first record that lacks a part or a blob which no erasure in
// the journal took away.
func (x *checker) lost() error {
	var bad *Bad
	if x.found.Unexplained = x.applier.unexplainedIntents(); len(x.found.Unexplained) > 0 {
		u := x.found.Unexplained[0]
		bad = &Bad{u.Position, u.IntentID, "its parts " + strings.Join(u.Parts, ", ") + " are missing, and no erasure in the log, nor the end of its plan, took them away"}
	}
	erasures := x.applier.state.Erasing()
	for _, b := range x.absentBlobs {
		erased := slices.ContainsFunc(erasures, func(e state.Erasure) bool {
			return e.Takes(catalog.ErasesBlobs, b.bad.Position, func() string { return b.user })
		})
		if !erased && b.bad.before(bad) {
			bad = b.bad
		}
	}
	if bad == nil {
		return nil
	}
	return bad
}

// versions that decided: a policy with all files of its list, and a catalog.
func (x *checker) versions(ctx context.Context, policy, types string) error {
	if _, err := x.blob(ctx, ledger.SystemTenant, types); err != nil {
		return err
	}
	return x.listed(ctx, policy)
}

// listed are the files of a policy or a registry.
func (x *checker) listed(ctx context.Context, digest string) error {
	list, err := x.blob(ctx, ledger.SystemTenant, digest)
	if err != nil || list == nil {
		return err
	}
	var files map[string]string
	if err := json.Unmarshal(list, &files); err != nil {
		return fmt.Errorf("blob %s is no list of files", digest)
	}
	for _, file := range files {
		if _, err := x.blob(ctx, ledger.SystemTenant, file); err != nil {
			return err
		}
	}
	return nil
}

// blob must exist and match its digest. One that was checked before
// is nil.
func (x *checker) blob(ctx context.Context, tenant, digest string) ([]byte, error) {
	key := tenant + "/" + digest
	if digest == "" || x.checked[key] {
		return nil, nil
	}
	f, _, err := x.Blobs.Fetch(ctx, tenant, "cas://"+digest)
	if err != nil {
		return nil, fmt.Errorf("blob %s of %s: %w", digest, tenant, err)
	}
	x.checked[key] = true
	data, err := io.ReadAll(f)
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("blob %s of %s: %w", digest, tenant, err)
	}
	if intents.Digest(data) != digest {
		return nil, fmt.Errorf("blob %s of %s is not what its digest says", digest, tenant)
	}
	x.found.Blobs++
	return data, nil
}
