package node

import (
	"context"
	"log/slog"

	"aob.dev/writ/bus"
	"aob.dev/writ/bus/natsserver"
	"aob.dev/writ/executors/memory"
	"aob.dev/writ/intents"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/durable"
	"aob.dev/writ/policies"
	"aob.dev/writ/router"
	"aob.dev/writ/storage"
)

// openRouter makes the router.
func (n *Node) openRouter(ctx context.Context) (err error) {
	var term router.Term
	if !n.standalone() {
		if n.term, err = n.openTerm(ctx); err != nil {
			return err
		}
		term = n.term
	}
	secret, err := n.keySecret()
	if err != nil {
		return err
	}
	n.router, err = router.New(router.Config{
		Term: term, Journal: n.erasing(), Records: n.journal, State: n.directory, Catalog: n.catalog, Blobs: n.blobs, Holdings: n.holdings, Remembered: n.remembered, Documented: n.index.Reach, Bus: n.conns.of(natsserver.Router),
		Key: n.keys.Signer(intents.RoleRouter), KeySecret: secret, Policy: n.policy, PolicyPlace: n.policyPlace(), KeepPolicy: n.keepVersions, Now: n.cfg.Now, Log: n.cfg.Log,
		Rate: n.rateOf, Meter: n.intents, Crashed: !n.standalone() || !n.ended, Blocked: n.blocked, Rates: n.cfg.Limits.Rates, UserHolds: n.cfg.Limits.UserHolds, TenantHolds: n.cfg.Limits.TenantHolds, Breakers: n.cfg.Limits.Breakers, BreakerStore: n.routerStore("breakers", datadir.Breakers), ShadowStore: n.routerStore("policy_shadow", datadir.PolicyShadow),
	})
	if err == nil {
		n.lookErasures(ctx)
	}
	return err
}

// routerStore is where the router stores a document: its successor reads it there.
func (n *Node) routerStore(name string, file func(dir string) string) durable.Store {
	if n.standalone() {
		return durable.Document(file(n.cfg.Dir))
	}
	return bus.NewDocument(n.conns.of(natsserver.Router), name)
}

// remembered reports whether a memory of a tenant names a blob.
func (n *Node) remembered(ctx context.Context, tenant, digest string) (bool, error) {
	return memory.NamesBlob(ctx, n.documents, tenant, digest, n.cfg.Now())
}

// erasing is the journal as the router erases from it.
func (n *Node) erasing() storage.Journal {
	if n.snapshots == nil {
		return n.journal
	}
	return n.snapshots.Erasing(n.journal)
}

// startRouter starts accepting intents: at once, or in a cell when this router is the one that decides.
func (n *Node) startRouter(g *group) error {
	if n.term != nil {
		g.run("router", n.decide)
		return nil
	}
	return n.startDeciding(g)
}

// startDeciding starts accepting intents. Those that an earlier router left open are ended meanwhile.
func (n *Node) startDeciding(g *group) error {
	if err := n.router.Start(g.ctx); err != nil {
		return err
	}
	if n.term != nil {
		n.term.decides.Store(true)
	}
	if err := g.serve("router", n.router.Serve); err != nil {
		return err
	}
	g.run("recovery", n.recover)
	if n.standalone() {
		g.run("check", n.keepChecking)
	}
	g.run("holds", n.router.WatchHolds)
	g.run("counters", n.router.Run)
	g.run("shadow", n.router.WatchShadow)
	n.startNotices(g)
	n.startAuditStream(g)
	g.run("frames", func(ctx context.Context) error { return bus.ShareFrames(ctx, n.Bus(), n.cfg.Log) })
	return nil
}

func (n *Node) recover(ctx context.Context) error {
	err := n.router.Recover(ctx)
	if err == nil {
		<-ctx.Done()
	}
	return err
}

// loadPolicy reads the policy from its place and compiles it.
func (n *Node) loadPolicy(context.Context) error {
	engine, err := n.cfg.Policy.Engine()
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
