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
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/ledger"
)

// lookTime is how long stores have to answer GET /health/deep.
const lookTime = 2 * time.Second

// Look implements gateway.Registry. A store is up if it says that something is not there.
func (n *Node) Look(ctx context.Context, tenant string) (stores map[string]string, found []gateway.AgentHealth, err error) {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	state := func(err error) string {
		if err == nil || errors.Is(err, storage.ErrNotFound) {
			return gateway.Up
		}
		return gateway.Down
	}
	_, journal := n.journal.Get(ctx, 0)
	_, documents := n.documents.Get(ctx, ledger.SystemTenant, storage.IndexPlans, "health")
	_, blobs := n.systemBlob(ctx, ledger.SystemTenant) // no digest: there is no such blob
	stores = map[string]string{"journal": state(journal), "documents": state(documents), "blobs": state(blobs)}

	layers, err := n.layers(ctx, tenant)
	if err != nil {
		return stores, nil, err
	}
	byName := map[string]gateway.AgentHealth{}
	add := func(d *agents.Definition, kind string) {
		a := gateway.AgentHealth{Name: d.Name, DisplayName: d.DisplayName, Kind: kind}
		if at, err := url.Parse(d.Endpoint); err == nil && d.Endpoint != "" {
			a.Kind, a.Endpoint = "remote", at.Host
		}
		byName[a.Name] = a
	}
	for _, d := range agents.Builtins() {
		add(d, "built-in")
	}
	for _, r := range layers {
		for _, d := range r.Agents {
			add(d, "local")
		}
	}
	for _, a := range byName {
		found = append(found, a)
	}
	slices.SortFunc(found, func(a, b gateway.AgentHealth) int { return strings.Compare(a.Name, b.Name) })
	return stores, found, nil
}
