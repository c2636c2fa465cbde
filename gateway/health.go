package gateway

import (
	"context"
	"maps"
	"net/url"
	"slices"

	"github.com/gin-gonic/gin"

	"aob.dev/writ/bus"
	"aob.dev/writ/internal/problem/edge"
	"aob.dev/writ/internal/ratelimit"
	"aob.dev/writ/state/agents"
)

// Deep is the result of GET /health/deep. It has no addresses but hosts, and no errors of stores,
// which may name more.
type Deep struct {
	Status string            `json:"status"` // ok or degraded
	Bus    string            `json:"bus"`    // ok: without it no key is known, and nothing answers
	Stores map[string]string `json:"stores"` // each ok or down
	Agents []AgentHealth     `json:"agents"`
	// Breakers of skill servers and remote agents that have failed for the tenant.
	Breakers []bus.Breaker `json:"breakers"`
}

// AgentHealth is an agent of a tenant.
type AgentHealth struct {
	Name        string `json:"agent_id"`
	DisplayName string `json:"display_name,omitempty"`
	Kind        string `json:"kind"`               // built-in, local or remote
	Endpoint    string `json:"endpoint,omitempty"` // host of a remote one

	// Breaker of a remote agent that has failed for the tenant.
	Breaker *bus.Breaker `json:"breaker,omitempty"`
}

// States of checked components.
const (
	Up       = "ok"
	Down     = "down"
	Degraded = "degraded"
)

// Remote is the kind of agents that run on a server of their own.
const Remote = "remote"

// Registry is the gateway's view of a tenant's registry and of its components.
type Registry interface {
	// SkillDocuments returns those of a tenant, by id.
	SkillDocuments(ctx context.Context, tenant string) ([]agents.SkillDocument, error)
	// Look checks the stores, and the agents and breakers of a tenant.
	Look(ctx context.Context, tenant string) (Deep, error)
}

// AgentsOf returns the agents of a tenant, whose registries are layers, by name.
func AgentsOf(layers []*agents.Revision, breakers []bus.Breaker) (out []AgentHealth) {
	byName := map[string]AgentHealth{}
	add := func(of *agents.Definition, kind string) {
		a := AgentHealth{Name: of.Name, DisplayName: of.DisplayName, Kind: kind}
		if at, err := url.Parse(of.Endpoint); err == nil && of.Endpoint != "" {
			a.Kind, a.Endpoint = Remote, at.Host
			if i := slices.IndexFunc(breakers, func(b bus.Breaker) bool { return b.Server == of.Name }); i >= 0 {
				a.Breaker = &breakers[i]
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
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		out = append(out, byName[name])
	}
	return out
}

// localTenant is the tenant of a single node.
const localTenant = "default"

// health is GET /health/deep: deepHealth for a caller with an API key of the tenant. A caller on
// the node's machine without one gets the agents of the tenant "default" and the states of their
// breakers, at the rate of reads, so that a probe may ask every second.
func (g *Gateway) health(c *gin.Context) error {
	if !g.onlyHere(c.Request) || c.GetHeader("X-Api-Key") != "" || c.GetHeader("Authorization") != "" {
		return g.authenticated(g.identified(g.deepHealth))(c)
	}
	if err := meter(g.reads.users, ratelimit.Caller{Name: edge.Address(c.Request.RemoteAddr)}); err != nil {
		return err
	}
	d, err := g.cfg.Registry.Look(c.Request.Context(), localTenant)
	type agent struct {
		Name   string `json:"agent_id"`
		Status string `json:"status"`
	}
	found := []agent{}
	for _, a := range d.Agents {
		status := "closed"
		if a.Breaker != nil {
			status = a.Breaker.Status
		}
		found = append(found, agent{a.Name, status})
	}
	return respond(c, gin.H{"agents": found}, err)
}

// deepHealth answers a caller with an API key of the tenant.
func (g *Gateway) deepHealth(c *gin.Context, a actor) error {
	ctx := c.Request.Context()
	d, err := g.cfg.Registry.Look(ctx, a.tenant)
	if err != nil {
		return err
	}
	d.Status, d.Bus = Up, Up
	for _, how := range d.Stores {
		if how != Up {
			d.Status = Degraded
		}
	}
	for _, b := range d.Breakers {
		if b.Status != "closed" {
			d.Status = Degraded
		}
	}
	return respond(c, d, nil)
}

// skillDocument is an answer of GET /skills/.
type skillDocument struct {
	agents.SkillDocument
	Content string `json:"content,omitempty"`
}

// listSkills is GET /skills/; with ?id= it includes the text.
func (g *Gateway) listSkills(c *gin.Context, a actor) error {
	all, err := g.cfg.Registry.SkillDocuments(c.Request.Context(), a.tenant)
	out := []skillDocument{}
	for _, d := range all {
		switch id := c.Query("id"); id {
		case "":
			out = append(out, skillDocument{SkillDocument: d})
		case d.ID:
			out = append(out, skillDocument{d, d.Text})
		}
	}
	return respond(c, out, err)
}
