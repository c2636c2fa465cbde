package approval

import (
	"cmp"
	"encoding/json"
	"slices"

	"aob.dev/writ/executors/skills"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// effectOf is the effect that the operator has declared, or else that of the server's
// hints. That a tool only reads is believed of servers that the operator trusts alone.
// Without either it is once.
func (w *Watcher) effectOf(s skills.Skill) catalog.Effect {
	src := w.Sources[s.Server]
	effect := catalog.Effect(cmp.Or(src.Effects[s.Name], string(claimOf(s))))
	if effect == catalog.Pure && src.Effects[s.Name] == "" && !src.Trust {
		return catalog.Once
	}
	return effect
}

// claimOf is the effect that the server's hints claim.
func claimOf(s skills.Skill) catalog.Effect {
	switch {
	case s.Destroys() && !isTrue(s.IdempotentHint):
		return catalog.Once
	case isTrue(s.ReadOnlyHint) && !s.Destroys():
		return catalog.Pure
	case isTrue(s.IdempotentHint):
		return catalog.Idempotent
	default:
		return catalog.Once
	}
}

func isTrue(hint *bool) bool { return hint != nil && *hint }

// destructive is the value for the approval: anybody may claim yes, only a server that the operator
// trusts may claim no.
func (w *Watcher) destructive(s skills.Skill) string {
	switch {
	case s.Destroys():
		return intents.Yes
	case s.DestructiveHint != nil && w.Sources[s.Server].Trust:
		return intents.No
	default:
		return ""
	}
}

// rule is the tenant data that selects the calls that need approval by people.
type rule struct {
	Once   bool     `json:"once"`
	Skills []string `json:"skills"`
}

// holds reports whether the rule holds calls of the skill for approval.
func (r rule) holds(pin intents.Pin) bool {
	return r.Once && pin.Guarded() || slices.ContainsFunc(r.Skills, pin.Matches)
}

// ruleOf reads a tenant's rule. A rule that cannot be read holds nothing.
func (w *Watcher) ruleOf(tenant string) (r rule) {
	raw := w.State.View().TenantData(tenant)["approval"]
	if len(raw) == 0 || json.Unmarshal(raw, &r) != nil {
		return rule{}
	}
	return r
}
