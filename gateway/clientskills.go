package gateway

import (
	"cmp"
	"context"
	"encoding/json"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/problem"
)

// clientSkills returns the approved skills that a caller's API key allows, by id. Missing
// manifests are loaded by an intent in a session that ends with it. A skill whose server is down
// is left out.
func (g *Gateway) clientSkills(ctx context.Context, a actor) ([]catalog.Manifest, error) {
	reply, err := g.userOf(ctx, a, bus.UserRequest{Roles: a.roles, Skills: true})
	if err != nil {
		return nil, err
	}
	var pins []intents.Pin
	if err := json.Unmarshal(reply.Skills, &pins); err != nil {
		return nil, err
	}
	known, missing := g.clients.known(a.tenant, pins)
	if len(missing) > 0 {
		a.session = newID("sess")
		defer func() {
			go g.endClient(context.WithoutCancel(ctx), a, a.session)
		}()
		for i := 0; i < len(missing); i += catalog.MaxLoaded {
			answer, _, err := g.clientIntent(ctx, a, bus.ClientCall{Type: "skill.load"}, catalog.SkillLoad{Skills: missing[i:min(i+catalog.MaxLoaded, len(missing))]})
			if err != nil {
				return nil, err
			}
			if err := g.clients.loaded(a.tenant, answer, known); err != nil {
				return nil, err
			}
		}
	}
	return approved(pins, known), nil
}

// known returns the cached manifests, by digest, of skills as they were approved, and the pins
// without one.
func (c *clients) known(tenant string, pins []intents.Pin) (known map[string]catalog.Manifest, missing []string) {
	known = map[string]catalog.Manifest{}
	for _, p := range pins {
		if m, ok := c.manifests.Get(tenant + " " + p.Digest); ok {
			known[p.Digest] = m
		} else {
			missing = append(missing, p.Skill)
		}
	}
	return known, missing
}

// loaded caches the answer of skill.load, and adds it to the known manifests.
func (c *clients) loaded(tenant string, answer *intents.Answer, known map[string]catalog.Manifest) error {
	if p := problem.OfAnswer(answer); p != nil {
		return p
	}
	var got catalog.SkillLoadResult
	if err := json.Unmarshal(answer.Outcome.Result, &got); err != nil {
		return err
	}
	for _, m := range got.Skills {
		known[m.Digest] = m
		c.manifests.Put(tenant+" "+m.Digest, tenant, "", manifestExtra+len(m.Description)+len(m.InputSchema)+len(m.OutputSchema), m)
	}
	return nil
}

// manifestExtra is the size of a manifest beside its texts, in bytes.
const manifestExtra = 1 << 10

// approved returns the skills of pins, each with its approved effect and its name for the caller, and
// destructive if the approval or the server says so.
func approved(pins []intents.Pin, known map[string]catalog.Manifest) []catalog.Manifest {
	out := []catalog.Manifest{}
	for _, p := range pins {
		if m, ok := known[p.Digest]; ok {
			m.Effect, m.WireName = catalog.Effect(p.Effect), cmp.Or(p.Name, m.WireName)
			m.Destructive = m.Destructive || p.Input().Destroys()
			out = append(out, m)
		}
	}
	return out
}
