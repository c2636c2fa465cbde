package node

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"time"

	"aob.dev/writ/bus"
	"aob.dev/writ/bus/natsserver"
	"aob.dev/writ/cell"
	"aob.dev/writ/gateway"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/keydir"
	"aob.dev/writ/state/agents"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/ledger"
)

// systemBlob reads a blob of tenant system.
func (n *Node) systemBlob(ctx context.Context, digest string) ([]byte, error) {
	return storage.ReadSystem(ctx, n.blobs, digest)
}

// registryTime bounds that question: it leaves the time in which a router takes over from another one.
const registryTime = 15 * time.Second

// registered is a tenant's registry in force, from the router here or, in a cell, from the one that
// decides: that one has the breakers.
func (n *Node) registered(ctx context.Context, tenant string) (out bus.RegistryReply, err error) {
	q := bus.RegistryRequest{Tenant: tenant}
	asks := n.conns.of(natsserver.Gateway)
	if n.standalone() || asks == nil {
		return n.router.Registry(q), nil
	}
	raw, err := json.Marshal(q)
	if err != nil {
		return out, err
	}
	ctx, cancel := context.WithTimeout(ctx, registryTime)
	defer cancel()
	if raw, err = bus.Ask(ctx, asks, bus.DirectoryRegistry, raw); err != nil {
		n.cfg.Log.WarnContext(ctx, "no router says which agents are in force", slog.String("error", err.Error()))
		return out, cell.Unavailable("no router answers now")
	}
	return out, json.Unmarshal(raw, &out)
}

// layers are the registries that a tenant has: that of system, then its own. Each is read
// once for its digest.
func (n *Node) layers(ctx context.Context, tenant string) (out []*agents.Revision, err error) {
	inForce := map[string]bus.RegistryReply{}
	tenants := slices.Compact([]string{storage.SystemTenant, tenant})
	for _, of := range tenants {
		if inForce[of], err = n.registered(ctx, of); err != nil {
			return nil, err
		}
	}
	for _, of := range tenants {
		r, err := n.revisions.Get(of, inForce[of].Bundle, inForce[of].Digest, func(digest string) ([]byte, error) { return n.systemBlob(ctx, digest) })
		if err != nil {
			return nil, err
		}
		if r != nil {
			out = append(out, r)
		}
	}
	return out, nil
}

// SkillDocuments are those that a tenant has.
func (n *Node) SkillDocuments(ctx context.Context, tenant string) ([]agents.SkillDocument, error) {
	layers, err := n.layers(ctx, tenant)
	if err != nil {
		return nil, err
	}
	return agents.SkillDocuments(layers...), nil
}

// rateOf is how many calls of a skill a tenant may make in a minute; 0: any number.
func (n *Node) rateOf(ctx context.Context, tenant, skill string) (int, error) {
	layers, err := n.layers(ctx, tenant)
	return agents.Rate(skill, layers...), err
}

// lookTime is how long stores have to answer GET /health/deep.
const lookTime = 2 * time.Second

// Look implements gateway.Registry. A store is up if it answers that something does not exist.
func (n *Node) Look(ctx context.Context, tenant string) (gateway.Deep, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	up := func(err error) string {
		if err == nil || errors.Is(err, storage.ErrNotFound) {
			return gateway.Up
		}
		return gateway.Down
	}
	d := gateway.Deep{Stores: map[string]string{}}
	if n.journal != nil {
		_, err := n.journal.Get(ctx, 0)
		d.Stores["journal"] = up(err)
	}
	if n.documents != nil {
		_, err := n.documents.Get(ctx, ledger.SystemTenant, storage.IndexPlans, "health")
		d.Stores["documents"] = up(err)
	}
	_, missing := n.systemBlob(ctx, ledger.SystemTenant) // no digest: there is no such blob
	d.Stores["blobs"] = up(missing)
	own, err := n.registered(ctx, tenant)
	if err != nil {
		return d, err
	}
	d.Breakers = own.Breakers

	layers, err := n.layers(ctx, tenant)
	if err != nil {
		return d, err
	}
	d.Agents = gateway.AgentsOf(layers, d.Breakers)
	return d, nil
}

// startAgentFiles puts the agents of the directory in force, and watches it.
func (n *Node) startAgentFiles(g *group) error {
	if n.agents.Start(g.ctx); n.cfg.Agents != "" {
		g.run("registry", n.agents.Run)
	}
	return nil
}

// newAgents makes the watcher of the directory of agents.
func (n *Node) newAgents() *agents.Watcher {
	w := &agents.Watcher{
		Dir: n.cfg.Agents, Variables: n.cfg.AgentVariables, Hosts: n.cfg.AgentHosts, Push: n.pushAgents, Log: n.cfg.Log,
		Known: func(model string) bool { _, ok := n.cfg.Models[model]; return ok },
	}
	if n.cfg.AgentsFound {
		w.Owner = n.cfg.Dir
	}
	return w
}

// pushAgents submits the revision for system, unless it is in force.
func (n *Node) pushAgents(ctx context.Context, r *agents.Revision) error {
	a := catalog.RegistryPush{Revision: 1, Digest: r.Digest()}
	if rows, _ := n.directory.Rows(keydir.LocalTenant); rows.Registry != nil {
		if rows.Registry.Digest == a.Digest {
			return nil
		}
		a.Revision += rows.Registry.Revision
	}
	var err error
	if a.Bundle, err = r.Pack(); err != nil {
		return err
	}
	if a.Bundle == "" {
		if err := r.Keep(func(content []byte) error { return n.keep(ctx, content, intents.Digest(content)) }); err != nil {
			return err
		}
	}
	if err := n.operator(ctx, "registry.push", a); err != nil {
		return err
	}
	n.skills.NewAgents()
	n.cfg.Log.InfoContext(ctx, "agents in force", slog.String("dir", n.cfg.Agents), slog.Int64("revision", a.Revision), slog.String("digest", a.Digest))
	return nil
}

// AgentsLine lists, for people, the agents of the directory that are in force; empty: there is no
// directory.
func (n *Node) AgentsLine() string { return n.agents.String() }
