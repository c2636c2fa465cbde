package audit

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/ledger"
)

// content is what an exporter has to know of a record. It follows from the record
// alone, so that many are read at once.
type content struct {
	rec      storage.Record
	digest   string
	versions []string         // policies and catalogs that it brings into the bundle
	keySet   string           // that it may put in force
	body     intents.Body     // of an order
	decision intents.Decision // of an order
	of       int64            // of what is about an order
	code     intents.Code     // of an outcome
}

// readContent takes a record of one's own journal apart.
func readContent(rec storage.Record) (c content, err error) {
	c = content{rec: rec, digest: rec.Digest()}
	switch rec.Kind {
	case storage.KindControl:
		return c, c.readControl()
	case storage.KindOrder:
		return c, c.readOrder()
	case storage.KindRelease:
		rel, err := readReleasePart(rec.Parts[storage.PartRelease])
		if err != nil {
			return c, err
		}
		c.versions = []string{rel.Decision.PolicyDigest, rel.Decision.Catalog}
	case storage.KindOutcome:
		var out struct {
			Code intents.Code `json:"code"`
		}
		if err := json.Unmarshal(rec.Parts[storage.PartOutcome], &out); err != nil {
			return c, err
		}
		c.code = out.Code
	case storage.KindTakeover:
	}
	c.of, err = ledger.About(rec)
	return c, err
}

func (c *content) readControl() error {
	control, err := unmarshal[state.Control](c.rec.Parts[storage.PartControl])
	if err != nil {
		return err
	}
	c.versions = []string{control.Policy, control.Catalog}
	if control.Genesis == nil {
		return nil
	}
	g, err := state.OpenGenesis(*control.Genesis)
	if err != nil {
		return err
	}
	c.keySet, c.versions = g.KeySet, []string{g.Policy, g.Catalog}
	return nil
}

func (c *content) readOrder() (err error) {
	if _, erased := c.rec.Erased[storage.PartOrder]; erased {
		return c.readErased()
	}
	sealed, err := intents.ReadSealed(c.rec.Parts[storage.PartOrder])
	if err != nil {
		return err
	}
	if c.body, err = sealed.Body(); err != nil {
		return err
	}
	if c.decision, err = intents.ReadDecision(c.rec.Parts[storage.PartDecision]); err != nil {
		return err
	}
	c.versions = []string{c.decision.PolicyDigest, c.decision.Catalog}
	var a catalog.KeyPut
	if c.effective() && c.body.Intent.Type == "key.put" && json.Unmarshal(c.body.Intent.Args, &a) == nil {
		c.keySet = a.KeySet
	}
	return nil
}

// effective: an order of the router that took effect where it stands.
func (c *content) effective() bool {
	return c.decision.Verdict == intents.Allow && routers(c.decision)
}

// restsOn says whether later records rest on a record, whosever they are: keys
// and directory of system and of the tenant, and the tenant's plans and steps.
func (c *content) restsOn(of string) bool {
	if c.rec.Kind == storage.KindControl {
		return true
	}
	return c.effective() && c.actsOn(of)
}

// actsOn says whether an order of the router, if it takes effect, is one that
// records of a tenant rest on.
func (c *content) actsOn(of string) bool {
	actor := c.body.Actor.Tenant
	switch c.body.Intent.Type {
	case "key.put", "policy.push":
		return true // every tenant's
	case state.TypeErase:
		a, err := unmarshal[catalog.RecordErase](c.body.Intent.Args)
		return err != nil || of == "" || state.Named(actor, a.Tenant) == of
	case "admin.put", "skill.approve", "grant.revoke":
		var a struct {
			Tenant string          `json:"tenant"`
			New    *catalog.Tenant `json:"new_tenant"`
		}
		if json.Unmarshal(c.body.Intent.Args, &a) != nil {
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
	waiting map[int64]waiting
	held    map[string]bool  // orders of the router that people were asked about and that records rest on, by intent_id
	release map[int64]string // the same, by position: the key set that their release puts in force
	keys    map[string]bool  // kids that are in force
	token   string           // the key set in force
}

// waiting is what its receipt says of an order whose outcome has not come yet, and whose it is.
type waiting struct{ intentID, policy, digest, tenant string }

// maxWaiting orders are remembered; others are read again.
const maxWaiting = 1 << 16

// take remembers what later records need: which keys are in force, and orders
// until their outcome.
func (s *memory) take(c *content) {
	if c.keySet != "" {
		s.know(c.keySet)
	}
	if c.rec.Kind == storage.KindOrder && c.decision.Verdict != intents.Deny && len(s.waiting) < maxWaiting {
		s.waiting[c.rec.Position] = waiting{c.decision.IntentID, c.decision.PolicyDigest, c.digest, c.body.Actor.Tenant}
	}
}

// ofHeld says whether later records rest on a held order of the router, on what
// people said of it, or on its release, at which it takes effect.
func (s *memory) ofHeld(c *content, of string) bool {
	switch {
	case c.rec.Kind == storage.KindRelease:
		token, rests := s.release[c.of]
		if token != "" {
			s.know(token)
		}
		return rests
	case c.rec.Kind != storage.KindOrder || !routers(c.decision):
		return false
	case c.decision.Verdict == intents.Hold && c.actsOn(of):
		var a catalog.KeyPut
		if c.body.Intent.Type == "key.put" {
			_ = json.Unmarshal(c.body.Intent.Args, &a) // what is no key set puts none in force
		}
		s.held[c.decision.IntentID], s.release[c.rec.Position] = true, a.KeySet
		return true
	case c.decision.Verdict == intents.Allow && c.body.Intent.Type == state.TypeApprove:
		a, err := unmarshal[catalog.Approve](c.body.Intent.Args)
		return err == nil && s.held[a.IntentID]
	default:
		return false
	}
}

func (s *memory) know(token string) {
	var set intents.KeySet
	if intents.PeekClaims(token, &set) != nil {
		return
	}
	s.keys, s.token = map[string]bool{}, token
	for _, k := range set.Keys {
		s.keys[k.KID] = !k.Revoked
	}
}

// tenant whose a record is.
func (x *exporter) tenant(ctx context.Context, c *content) (string, error) {
	switch c.rec.Kind {
	case storage.KindControl:
		return ledger.SystemTenant, nil
	case storage.KindOrder:
		return c.body.Actor.Tenant, nil
	case storage.KindOutcome, storage.KindRelease, storage.KindTakeover:
	}
	o, err := x.about(ctx, c.of)
	return o.tenant, err
}

// about gives the order that a record is about.
func (x *exporter) about(ctx context.Context, of int64) (waiting, error) {
	if o, there := x.waiting[of]; there {
		return o, nil
	}
	rec, err := x.Records.Get(ctx, of)
	if err != nil {
		return waiting{}, err
	}
	c, err := readContent(rec)
	return waiting{c.decision.IntentID, c.decision.PolicyDigest, c.digest, c.body.Actor.Tenant}, err
}

// receipt of the order that an outcome ends: what the router told its submitter,
// a pure function of the two records, and who signs it. False where no router key
// that is here was in force. The order is forgotten.
func (x *exporter) receipt(ctx context.Context, c *content) (r intents.Receipt, key intents.Signer, ok bool, err error) {
	o, err := x.about(ctx, c.of)
	if err != nil {
		return r, key, false, err
	}
	delete(x.waiting, c.of)
	at := slices.IndexFunc(x.RouterKeys, func(s intents.Signer) bool { return x.keys[s.KID] })
	if at < 0 {
		return r, key, false, nil
	}
	return intents.Receipt{
		Issuer: x.Origin, IntentID: o.intentID, Position: c.of, Code: c.code,
		PolicyDigest: o.policy, RecordDigest: o.digest, OutcomeDigest: c.digest, WithinSec: intents.PromiseSeconds,
	}, x.RouterKeys[at], true, nil
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
	var files map[string]string // the file list of a policy names its files
	if json.Unmarshal(data, &files) == nil {
		for _, name := range slices.Sorted(maps.Keys(files)) {
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
	f, _, err := blobs.Fetch(ctx, ledger.SystemTenant, "cas://"+digest)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(f)
	return data, errors.Join(err, f.Close())
}
