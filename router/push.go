package router

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"sync"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/policies"
)

// typePush puts a policy in force for all tenants. Its effect is at its own
// position: from there on no decision commits that another policy made.
const typePush = "policy.push"

// pushed is the policy that the last policy.push put in force.
type pushed struct {
	digest string
	bundle string // base64
}

// openPush reads the bundle of an order. The order's signature is the bundle's,
// and so none is asked of the bundle itself.
func openPush(a catalog.PolicyPush) (policies.Tree, error) {
	raw, err := base64.StdEncoding.Strict().DecodeString(a.Bundle)
	if err != nil {
		return policies.Tree{}, illegal("/intent/args/bundle", "not base64")
	}
	tree, err := policies.ReadBundle(raw, nil)
	switch {
	case err != nil:
		return tree, illegal("/intent/args/bundle", err.Error())
	case tree.Revision != a.Revision:
		return tree, illegal("/intent/args/revision", fmt.Sprintf("the bundle has revision %d", tree.Revision))
	case tree.Source.Digest() != a.Digest:
		return tree, illegal("/intent/args/digest", "the bundle has another digest")
	}
	return tree, nil
}

// legalPush judges the order on the fold. The lock must be held.
func (v *View) legalPush(e *intents.Envelope) error {
	a, err := argsOf[catalog.PolicyPush](e)
	if err != nil {
		return err
	}
	if a.Revision <= v.d.policyRevision {
		return illegal("/intent/args/revision", fmt.Sprintf("revision %d was in force already: only a higher one replaces it", v.d.policyRevision))
	}
	return nil
}

// provePush compiles the policy of a push and has the router prove itself under
// it, before anything is committed. That costs what the sender likes, and so it
// comes after stage 6.
func (r *Router) provePush(ctx context.Context, o *order) error {
	if o.env.Type() != typePush || o.duplicate != nil {
		return nil
	}
	if r.cfg.PolicyPlace != "" {
		return illegal("/intent/args", "policies come from "+r.cfg.PolicyPlace+": change them there")
	}
	a, err := argsOf[catalog.PolicyPush](o.env)
	if err != nil {
		return err
	}
	tree, err := openPush(a)
	if err != nil {
		return err
	}
	engine, err := policies.NewTree(ctx, tree)
	if err != nil {
		return illegal("/intent/args/bundle", err.Error())
	}
	if err := r.SelfProof(ctx, engine); err != nil {
		return illegal("/intent/args/bundle", err.Error())
	}
	return nil
}

// foldPush applies the order.
func (d *Directory) foldPush(args json.RawMessage) error {
	var a catalog.PolicyPush
	if err := json.Unmarshal(args, &a); err != nil {
		return err
	}
	d.policyDigest, d.policyRevision = a.Digest, a.Revision
	d.pushed = &pushed{a.Digest, a.Bundle}
	return nil
}

// foldPolicy applies a control record about the policy: it comes from a place
// again. The highest revision stays: an older one never comes back.
func (d *Directory) foldPolicy(digest string, revision int64) {
	d.policyDigest, d.pushed = digest, nil
	d.policyRevision = max(d.policyRevision, revision)
}

func (d *Directory) policyPushed() (p *pushed, revision int64) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.pushed, d.policyRevision
}

// adoption puts what was pushed in force, once.
type adoption struct{ mu sync.Mutex }

// inForce is the policy in force: what was pushed last, as soon as the fold has
// it. It was proved before it was committed.
func (r *Router) inForce(ctx context.Context) (*policies.Engine, error) {
	p, revision := r.dir.policyPushed()
	base := r.cfg.Policy.Engine()
	if p == nil || r.cfg.PolicyPlace != "" || base.Digest() == p.digest {
		return base, nil
	}
	r.adoption.mu.Lock()
	defer r.adoption.mu.Unlock()
	if base = r.cfg.Policy.Engine(); base.Digest() == p.digest {
		return base, nil
	}
	tree, err := openPush(catalog.PolicyPush{Revision: revision, Digest: p.digest, Bundle: p.bundle})
	if err != nil {
		return nil, fmt.Errorf("pushed policy: %w", err)
	}
	return r.cfg.Policy.ReplaceTree(ctx, tree, func(ctx context.Context, e *policies.Engine) error {
		if r.cfg.KeepPolicy == nil {
			return nil
		}
		return r.cfg.KeepPolicy(ctx, e) // before it decides anything that is recorded
	})
}
