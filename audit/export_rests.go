package audit

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/ledger"
)

// reads says which policies and catalogs a record brings into the bundle, and
// whether later records rest on it whosever they are: keys and directory of
// system and of the tenant, and the tenant's plans and steps.
func (x *exporter) reads(rec storage.Record) (versions []string, restsOn bool, err error) {
	switch rec.Kind {
	case storage.KindControl:
		var c control
		if err := json.Unmarshal(rec.Parts[storage.PartControl], &c); err != nil {
			return nil, false, err
		}
		if c.Genesis != nil {
			g, _, err := openGenesis(*c.Genesis)
			if err != nil {
				return nil, false, err
			}
			x.know(g.KeySet)
			return []string{g.Policy, g.Catalog}, true, nil
		}
		return []string{c.Policy, c.Catalog}, true, nil
	case storage.KindOrder:
		var sealed intents.Sealed
		var body intents.Body
		var d intents.Decision
		if err := errors.Join(json.Unmarshal(rec.Parts[storage.PartOrder], &sealed), json.Unmarshal(rec.Parts[storage.PartDecision], &d)); err != nil {
			return nil, false, err
		}
		if err := json.Unmarshal([]byte(sealed.Payload), &body); err != nil {
			return nil, false, err
		}
		x.await(rec, d)
		return []string{d.PolicyDigest, d.Catalog}, x.restsOn(body, d), nil
	case storage.KindRelease:
		rel, err := readReleasePart(rec.Parts[storage.PartRelease])
		if err != nil {
			return nil, false, err
		}
		return []string{rel.Decision.PolicyDigest, rel.Decision.Catalog}, false, nil
	default:
		return nil, false, nil
	}
}

func (x *exporter) restsOn(body intents.Body, d intents.Decision) bool {
	if d.Verdict != intents.Allow || d.Executor != catalog.ExecutorRouter {
		return false
	}
	actor, of := body.Actor.Tenant, x.sel.Tenant
	switch body.Intent.Type {
	case "key.put":
		var a catalog.KeyPut
		if json.Unmarshal(body.Intent.Args, &a) == nil {
			x.know(a.KeySet)
		}
		return true
	case "policy.push":
		return true // every tenant's
	case "admin.put", "skill.approve", "grant.revoke":
		var a struct {
			Tenant string          `json:"tenant"`
			New    *catalog.Tenant `json:"new_tenant"`
		}
		if json.Unmarshal(body.Intent.Args, &a) != nil {
			return true
		}
		on := named(actor, a.Tenant)
		if a.New != nil {
			on = a.New.ID
		}
		return of == "" || on == of || on == ledger.SystemTenant
	default:
		return of == "" || actor == of
	}
}

// know remembers which keys are in force, for receipts.
func (x *exporter) know(token string) {
	var s intents.KeySet
	if intents.PeekClaims(token, &s) != nil {
		return
	}
	x.keys, x.token = map[string]bool{}, token
	for _, k := range s.Keys {
		x.keys[k.KID] = !k.Revoked
	}
}

// receipt of the order that an outcome ends: what the router told its submitter,
// a pure function of the two records. None where no router
// key that is here was in force.
func (x *exporter) receipt(ctx context.Context, rec storage.Record) (string, error) {
	inForce := slices.IndexFunc(x.RouterKeys, func(s intents.Signer) bool { return x.keys[s.KID] })
	if inForce < 0 {
		return "", nil
	}
	of, err := ledger.About(rec)
	if err != nil {
		return "", err
	}
	o, err := x.ended(ctx, of)
	if err != nil {
		return "", err
	}
	var out intents.Outcome
	if err := json.Unmarshal(rec.Parts[storage.PartOutcome], &out); err != nil {
		return "", err
	}
	return intents.IssueReceipt(x.RouterKeys[inForce], intents.Receipt{
		Issuer: x.Origin, IntentID: o.intentID, Position: of, Code: out.Code,
		PolicyDigest: o.policy, RecordDigest: o.digest, OutcomeDigest: rec.Digest(), WithinSec: intents.PromiseSeconds,
	})
}

// waiting is what a receipt says of an order whose outcome has not come yet.
type waiting struct{ intentID, policy, digest string }

// maxWaiting orders are remembered; others are read again.
const maxWaiting = 1 << 16

// await remembers an order until its outcome.
func (x *exporter) await(rec storage.Record, d intents.Decision) {
	if d.Verdict != intents.Deny && len(x.waiting) < maxWaiting {
		x.waiting[rec.Position] = waiting{d.IntentID, d.PolicyDigest, rec.Digest()}
	}
}

// ended gives an order whose outcome is here, and forgets it.
func (x *exporter) ended(ctx context.Context, of int64) (waiting, error) {
	if o, there := x.waiting[of]; there {
		delete(x.waiting, of)
		return o, nil
	}
	order, err := x.Records.Get(ctx, of)
	if err != nil {
		return waiting{}, err
	}
	var d intents.Decision
	err = json.Unmarshal(order.Parts[storage.PartDecision], &d)
	return waiting{d.IntentID, d.PolicyDigest, order.Digest()}, err
}

// blob writes something that decided, once. What was not kept is left out, and
// what it decided cannot be replayed.
func (x *exporter) blob(ctx context.Context, digest string) error {
	if digest == "" || x.blobs[digest] {
		return nil
	}
	x.blobs[digest] = true
	data, err := fetch(ctx, x.Blobs, digest)
	if errors.Is(err, storage.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	var files map[string]string // the file list of a policy names its files
	if json.Unmarshal(data, &files) == nil {
		for _, file := range files {
			if err := x.blob(ctx, file); err != nil {
				return err
			}
		}
	}
	return x.write(line{Blob: &Blob{Digest: digest, Data: data}})
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
