package state

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state/agents"
)

// skillApprove pins a skill's manifest in a tenant, or removes the pin.
var skillApprove = operators(TypeSkillApprove,
	func(v *View, o Intent, a catalog.SkillApprove) (Effect, error) {
		id := TargetTenant(o.Tenant, a.Tenant)
		if v.s.dir.tenants[id] == nil {
			return Effect{}, illegal("/intent/args/tenant", "no such tenant")
		}
		return v.addWritesToReads(accepted(SubjectTenant(id)))
	},
	func(s *State, o Intent, a catalog.SkillApprove) error {
		id := TargetTenant(o.Tenant, a.Tenant)
		if s.dir.tenants[id] == nil {
			return fmt.Errorf("skill.approve for a tenant that is not there")
		}
		pin := intents.Pin{Skill: a.Skill, Digest: a.Digest, Effect: string(a.Effect), Destructive: a.Destructive, Trusted: a.Trusted, OpenWorld: a.OpenWorld, Server: a.Server, Summary: a.Summary, CacheSeconds: a.CacheSeconds, Shared: a.Shared}
		if a.CacheSeconds > 0 {
			pin.Since = o.Position
		}
		t := s.change(id, o.Position)
		if a.Revoked {
			t.revoke(a.Skill)
			return nil
		}
		pin.Name = t.named(a.Skill)
		t.Pins[a.Skill] = pin
		delete(t.Revoked, a.Skill)
		if t.Inputs == nil { // a snapshot omits it if empty
			t.Inputs = make(map[string]json.RawMessage)
		}
		delete(t.Inputs, a.Skill)
		if len(a.InputSchema) > 0 && !o.Erased {
			t.Inputs[a.Skill] = a.InputSchema
		}
		return nil
	})

// named is the name of a skill for models and MCP clients, from its first approval on.
func (t *tenant) named(skill string) string {
	if t.Names[skill] == "" {
		if t.Names == nil { // a snapshot omits it if empty
			t.Names = make(map[string]string)
		}
		t.Names[skill] = agents.WireName(skill, t.isNamed)
	}
	return t.Names[skill]
}

// isNamed reports whether a skill was approved under a name.
func (t *tenant) isNamed(name string) bool {
	return slices.Contains(slices.Collect(maps.Values(t.Names)), name)
}

// revoke removes the approval of a skill. The revocation is retained, so that only an approval
// restores it.
func (t *tenant) revoke(skill string) {
	delete(t.Pins, skill)
	delete(t.Inputs, skill)
	if t.Revoked == nil {
		t.Revoked = make(map[string]bool)
	}
	t.Revoked[skill] = true
}
