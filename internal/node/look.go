package node

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"

	"aob.dev/writ/agentic/agents"
	"aob.dev/writ/gateway"
	"aob.dev/writ/internal/bus"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/ledger"
)

// lookTime is how long stores have to answer GET /health/deep.
const lookTime = 2 * time.Second

// Look implements gateway.Registry. A store is up if it says that something is not there.
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
	byName := map[string]gateway.AgentHealth{}
	add := func(of *agents.Definition, kind string) {
		a := gateway.AgentHealth{Name: of.Name, DisplayName: of.DisplayName, Kind: kind}
		if at, err := url.Parse(of.Endpoint); err == nil && of.Endpoint != "" {
			a.Kind, a.Endpoint = gateway.Remote, at.Host
			if i := slices.IndexFunc(d.Breakers, func(b bus.Breaker) bool { return b.Server == of.Name }); i >= 0 {
				a.Breaker = &d.Breakers[i]
			}
		}
		byName[a.Name] = a
	}
	for _, of := range agents.Builtins() {
		add(of, "built-in")
	}
	for _, r := range layers {
		for _, of := range r.Agents {
			add(of, "local")
		}
	}
	for _, a := range byName {
		d.Agents = append(d.Agents, a)
	}
	slices.SortFunc(d.Agents, func(a, b gateway.AgentHealth) int { return strings.Compare(a.Name, b.Name) })
	return d, nil
}
