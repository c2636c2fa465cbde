package node

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"sync"

	"aob.dev/writ/agentic/agents"
	"aob.dev/writ/internal/bus"
	"aob.dev/writ/internal/bus/natsserver"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// revisions are what was read of registries in force, by tenant. The zero value is ready.
type revisions struct {
	mu sync.Mutex
	of map[string]*agents.Revision
}

// systemBlob reads a blob of tenant system.
func (n *Node) systemBlob(ctx context.Context, digest string) ([]byte, error) {
	return storage.ReadSystem(ctx, n.blobs, digest)
}

// registered is what a tenant has in force, as the router here says, or one elsewhere.
func (n *Node) registered(ctx context.Context, tenant string) (out bus.RegistryReply, err error) {
	q := bus.RegistryRequest{Tenant: tenant}
	if n.router != nil {
		return n.router.Registry(q), nil
	}
	raw, err := json.Marshal(q)
	if err != nil {
		return out, err
	}
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	if raw, err = n.conns[natsserver.Gateway].Request(ctx, bus.DirectoryRegistry, raw); err != nil {
		n.cfg.Log.WarnContext(ctx, "no router says which agents are in force", slog.String("error", err.Error()))
		return out, away("no router answers now")
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
	n.revisions.mu.Lock()
	defer n.revisions.mu.Unlock()
	for _, of := range tenants {
		now, digest := inForce[of], inForce[of].Digest
		if digest == "" {
			continue
		}
		r := n.revisions.of[of]
		if r == nil || r.Digest() != digest {
			if r, err = state.ContentOf(now.Bundle, digest, func(digest string) ([]byte, error) { return n.systemBlob(ctx, digest) }); err != nil {
				return nil, err
			}
			if n.revisions.of == nil {
				n.revisions.of = map[string]*agents.Revision{}
			}
			n.revisions.of[of] = r
		}
		out = append(out, r)
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
