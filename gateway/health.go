package gateway

import (
	"context"

	"github.com/gin-gonic/gin"

	"aob.dev/writ/agentic/agents"
	"aob.dev/writ/internal/bus"
	"aob.dev/writ/internal/problem/edge"
	"aob.dev/writ/internal/ratelimit"
)

// Deep is what GET /health/deep finds. It has no addresses but hosts, and no errors of
// stores, which may name more.
type Deep struct {
	Status string            `json:"status"` // ok or degraded
	Bus    string            `json:"bus"`    // ok: without it no key is known, and nothing answers
	Stores map[string]string `json:"stores"` // each ok or down
	Agents []AgentHealth     `json:"agents"`
	// Breakers of skill servers and remote agents that have failed the tenant.
	Breakers []bus.Breaker `json:"breakers"`
}

// AgentHealth is an agent that a tenant has.
type AgentHealth struct {
	Name        string `json:"agent_id"`
	DisplayName string `json:"display_name,omitempty"`
	Kind        string `json:"kind"`               // built-in, local or remote
	Endpoint    string `json:"endpoint,omitempty"` // host of a remote one

	// Breaker of a remote one that has failed the tenant.
	Breaker *bus.Breaker `json:"breaker,omitempty"`
}

// States of what is looked at.
const (
	Up       = "ok"
	Down     = "down"
	Degraded = "degraded"
)

// Remote is the kind of agents that a server answers for.
const Remote = "remote"

// Registry is what the gateway shows of a tenant's registry and of what stands behind it.
type Registry interface {
	// SkillDocuments are those of a tenant, by id.
	SkillDocuments(ctx context.Context, tenant string) ([]agents.SkillDocument, error)
	// Look looks at the stores, and at the agents and breakers of a tenant.
	Look(ctx context.Context, tenant string) (Deep, error)
}

// localTenant is that of a single node.
const localTenant = "default"

// health is GET /health/deep: deepHealth for whoever has an API key of the tenant. Who asks on the
// machine of the node without one gets the agents of the tenant "default" and the states of their
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

// deepHealth answers an API key of the tenant.
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

// listSkills is GET /skills/: ?id=, then with its text.
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
