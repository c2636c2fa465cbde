package datadir

import (
	"encoding/json"
	"fmt"
	"slices"

	"aob.dev/writ/intents"
	"aob.dev/writ/state"
)

// Unmatched is a name in what operators have put down for a tenant that names nothing, so that
// it has no effect: most likely it is misspelt.
type Unmatched struct {
	Tenant, Where, Name string
}

func (u Unmatched) String() string {
	return fmt.Sprintf("%s of tenant %s: %q matches no skill", u.Where, u.Tenant, u.Name)
}

// UnmatchedNames finds the names of skills in the rows of a tenant that match no approved skill and
// none that a server declares. Names of roles and types that are not there are refused when they are put.
func UnmatchedNames(rows state.TenantRows, declared []SkillVersion) (out []Unmatched) {
	miss := func(where string, names []string, known func(string) bool) {
		for _, name := range names {
			if !known(name) {
				out = append(out, Unmatched{rows.Tenant, where, name})
			}
		}
	}
	skill := func(like func(intents.Pin, string) bool) func(string) bool {
		return func(name string) bool {
			return slices.ContainsFunc(rows.Skills, func(p intents.Pin) bool { return like(p, name) }) ||
				slices.ContainsFunc(declared, func(v SkillVersion) bool {
					return v.Declared && v.For(rows.Tenant) && like(intents.Pin{Skill: v.Name}, name)
				})
		}
	}
	id := func(p intents.Pin, name string) bool { return intents.Like(name, p.Skill) }
	var approval struct{ Skills []string }
	var allowed []string
	_ = json.Unmarshal(rows.Data["approval"], &approval) // what cannot be read is denied elsewhere
	_ = json.Unmarshal(rows.Data["skills_allow"], &allowed)
	miss("data approval", approval.Skills, skill(intents.Pin.Named))
	miss("data skills_allow", allowed, skill(intents.Pin.Named))
	for _, k := range rows.APIKeys {
		if !k.Revoked {
			miss("API key "+k.ID, k.Tools, skill(id))
		}
	}
	return out
}
