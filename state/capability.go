package state

import (
	"encoding/json"
	"slices"
	"strings"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// CapabilityApprove is what every approver must have.
const CapabilityApprove = "runs:approve"

// Entitled says whether capabilities give all that an order needs.
func Entitled(rules intents.Rules, have []string, typ, ofType string, args json.RawMessage, user string) bool {
	return !slices.ContainsFunc(allNeeded(rules, typ, ofType, args, user), func(c string) bool { return !Covered(rules, have, c) })
}

func allNeeded(rules intents.Rules, typ, ofType string, args json.RawMessage, user string) []string {
	return append([]string{needed(rules, typ, ofType, args, user)}, catalog.AlsoNeeds(typ, args)...)
}

// needed is the capability that an order needs. Before intents.RulesStrict every user could
// write memories for the whole tenant.
func needed(rules intents.Rules, typ, ofType string, args json.RawMessage, user string) string {
	if typ == "write_memory" && rules < intents.RulesStrict {
		return ofType
	}
	return catalog.Row{Type: typ, Capability: ofType}.Needs(args, user)
}

// Covered says whether capabilities give one: area:verb[:resource], where * stands
// for all of a part, and a capability without resource covers every resource but,
// from intents.RulesStrict on, a reserved one.
func Covered(rules intents.Rules, have []string, need string) bool {
	return slices.ContainsFunc(have, func(c string) bool { return covers(rules, c, need) })
}

func covers(rules intents.Rules, have, need string) bool {
	area, haveRest, ok1 := strings.Cut(have, ":")
	needArea, needRest, ok2 := strings.Cut(need, ":")
	verb, resource, limited := strings.Cut(haveRest, ":")
	needVerb, needResource, named := strings.Cut(needRest, ":")
	if !ok1 || !ok2 || area != "*" && area != needArea || verb != "*" && verb != needVerb {
		return false
	}
	reserved := need == catalog.CapabilityTenantMemory && rules >= intents.RulesStrict || need == catalog.ReplayAnyRuns
	return !limited && !reserved || resource == "*" || named && resource == needResource
}

// Oversees says whose capabilities let them see the plans of all users of their
// tenant: those who read its record, and those who could give themselves that.
func Oversees(caps []string) bool {
	return Covered(intents.CurrentRules, caps, "audit:read") || Covered(intents.CurrentRules, caps, "admin:directory")
}

// systemTenant is the tenant whose operators may name another one.
const systemTenant = "system"

// Named is the tenant that an operator's order acts on.
func Named(actor, named string) string {
	if named == "" {
		return actor
	}
	return named
}

// ForeignTenant says whether an operator's order names another tenant than the
// actor's own; only operators of system may.
func ForeignTenant(actor, typ string, args json.RawMessage) bool {
	if actor == systemTenant {
		return false
	}
	if typ == TypePolicyPush {
		return true // a policy is every tenant's
	}
	var a struct {
		Tenant string          `json:"tenant"`
		New    json.RawMessage `json:"new_tenant"`
	}
	if json.Unmarshal(args, &a) != nil {
		return true
	}
	return a.New != nil || (a.Tenant != "" && a.Tenant != actor)
}

// ErrForeign is the refusal of an order that does.
func ErrForeign() error {
	return intents.Refuse(intents.RBACForbidden, "/intent/args/tenant", "only operators of system may name another tenant")
}
