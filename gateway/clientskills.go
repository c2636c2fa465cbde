package gateway

import (
	"context"
	"encoding/json"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/bus"
	"aob.dev/writ/internal/problem"
)

// clientSkills are the approved skills that the API key of a caller gives, by id. What is
// not known yet of one is loaded by an order in a session that ends with it. One whose server
// is down is left out.
func (g *Gateway) clientSkills(ctx context.Context, a actor) ([]catalog.Manifest, error) {
	reply, err := ask[bus.UserReply](ctx, g.cfg.Bus, bus.DirectoryUser, bus.UserRequest{Tenant: a.tenant, UserID: a.user, KeyID: a.keyID, Roles: a.roles, Skills: true})
	if err != nil {
		return nil, err
	}
	var pins []intents.Pin
	if err := json.Unmarshal(reply.Skills, &pins); err != nil {
		return nil, err
	}
	if missing := g.clients.missing(pins); len(missing) > 0 {
		a.session = newID("sess")
		defer func() {
			go g.endClient(context.WithoutCancel(ctx), a, a.session)
		}()
		for i := 0; i < len(missing); i += catalog.MaxLoaded {
			answer, err := g.clientOrder(ctx, a, "", "skill.load", catalog.SkillLoad{Skills: missing[i:min(i+catalog.MaxLoaded, len(missing))]})
			if err != nil {
				return nil, err
			}
			if err := g.clients.loaded(answer); err != nil {
				return nil, err
			}
		}
	}
	return g.clients.known(pins), nil
}

// missing are the skills of which nothing is known as they were approved.
func (c *clients) missing(pins []intents.Pin) (ids []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.manifests) > maxCallers {
		clear(c.manifests) // all of them can be loaded again
	}
	for _, p := range pins {
		if _, ok := c.manifests[p.Digest]; !ok {
			ids = append(ids, p.Skill)
		}
	}
	return ids
}

// loaded remembers what skill.load has answered.
func (c *clients) loaded(answer *intents.Answer) error {
	if p := problem.OfAnswer(answer); p != nil {
		return p
	}
	var got catalog.SkillLoadResult
	if err := json.Unmarshal(answer.Outcome.Result, &got); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range got.Skills {
		c.manifests[m.Digest] = m
	}
	return nil
}

// known are the skills of pins, each with the effect that it was approved with, and destructive
// if the approval or the server says so.
func (c *clients) known(pins []intents.Pin) []catalog.Manifest {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := []catalog.Manifest{}
	for _, p := range pins {
		if m, ok := c.manifests[p.Digest]; ok {
			m.Effect = catalog.Effect(p.Effect)
			m.Destructive = m.Destructive || p.Fact().Destroys()
			out = append(out, m)
		}
	}
	return out
}
