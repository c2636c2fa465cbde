package router

import (
	"context"
	"errors"
	"fmt"

	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/policies"
	"aob.dev/writ/state"
)

// openPush reads the bundle of an intent. The intent's signature covers the bundle, so the bundle
// needs none of its own.
func openPush(a catalog.PolicyPush) (policies.Tree, error) {
	tree, err := openBundle(a.Bundle, a.Digest)
	switch {
	case errors.Is(err, errOtherDigest):
		return tree, illegal("/intent/args/digest", err.Error())
	case err != nil:
		return tree, illegal("/intent/args/bundle", err.Error())
	case tree.Revision != a.Revision:
		return tree, illegal("/intent/args/revision", fmt.Sprintf("the bundle has revision %d", tree.Revision))
	}
	return tree, nil
}

// provePush compiles the policy of a push and runs the router's self-proof under it, before
// anything is committed; likewise that of a shadow policy. The sender determines its cost, so it comes
// after stage 6.
func (r *Router) provePush(ctx context.Context, d *decision) error {
	switch {
	case d.duplicate != nil:
		return nil
	case d.env.Type() == state.TypeAdminPut:
		return r.proveShadow(ctx, d)
	case d.env.Type() != state.TypePolicyPush:
		return nil
	}
	if r.cfg.PolicyPlace != "" {
		return illegal("/intent/args", "policies come from "+r.cfg.PolicyPlace+": change them there")
	}
	a, err := argsOf[catalog.PolicyPush](d.env)
	if err != nil {
		return err
	}
	tree, err := openPush(a)
	if err != nil {
		return err
	}
	engine, err := policies.NewTree(tree)
	if err != nil {
		return illegal("/intent/args/bundle", err.Error())
	}
	if err := r.SelfProof(ctx, engine); err != nil {
		return illegal("/intent/args/bundle", err.Error())
	}
	return nil
}

// inForce is the policy in force: the last one pushed, as soon as the state has it. It was proved
// before it was committed.
func (r *Router) inForce(ctx context.Context) (*policies.Engine, error) {
	p, _ := r.state.PolicyPushed()
	base := r.cfg.Policy.Engine()
	if p == nil || r.cfg.PolicyPlace != "" || base.Digest() == p.Digest {
		return base, nil
	}
	r.adopting.Lock()
	defer r.adopting.Unlock()
	if base = r.cfg.Policy.Engine(); base.Digest() == p.Digest {
		return base, nil
	}
	tree, err := openPush(catalog.PolicyPush{Revision: p.Revision, Digest: p.Digest, Bundle: p.Bundle})
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
