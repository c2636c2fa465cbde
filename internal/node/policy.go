package node

import (
	"context"
	"log/slog"

	"aob.dev/writ/policies"
)

// loadPolicy reads the policy from its place and compiles it.
func (n *Node) loadPolicy(ctx context.Context) error {
	engine, err := n.cfg.Policy.Engine(ctx)
	if err != nil {
		return err
	}
	n.policy = policies.NewLive(engine)
	return nil
}

// policyPlace is where the policy comes from; empty: it is the embedded one, and
// policy.push may replace it.
func (n *Node) policyPlace() string {
	if n.cfg.Policy.Dir == "" && len(n.cfg.Policy.Extensions) > 0 {
		return "the embedded tree with its extensions"
	}
	return n.cfg.Policy.Dir
}

func (n *Node) followPolicy(ctx context.Context) error {
	return n.cfg.Policy.Follow(ctx, n.policy, n.prove, func(e *policies.Engine, err error) {
		if err != nil {
			n.cfg.Log.ErrorContext(ctx, "policy not loaded; the old one stays in force", slog.String("error", err.Error()))
			return
		}
		if err := n.router.PolicyChanged(ctx); err != nil {
			n.cfg.Log.ErrorContext(ctx, "policy change not recorded", slog.String("error", err.Error()))
		}
		n.cfg.Log.InfoContext(ctx, "policy in force", slog.String("digest", e.Digest()), slog.Int64("revision", e.Revision()))
	})
}
