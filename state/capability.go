package state

import (
	"encoding/json"
	"slices"
	"strings"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// CapabilityApprove is the capability that every approver needs.
const CapabilityApprove = "runs:approve"

// Allows reports whether capabilities include everything that an intent needs.
func Allows(have []string, typ, ofType string, args json.RawMessage, user string) bool {
	return !slices.ContainsFunc(allNeeded(typ, ofType, args, user), func(c string) bool { return !Covers(have, c) })
}

func allNeeded(typ, ofType string, args json.RawMessage, user string) []string {
	return append([]string{catalog.Row{Type: typ, Capability: ofType}.Needs(args, user)}, catalog.AlsoNeeds(typ, args)...)
}

// Covers reports whether capabilities include one: area:verb[:resource], where * stands for all
// of a part, and a capability without resource covers every resource except a reserved one.
func Covers(have []string, need string) bool {
	return slices.ContainsFunc(have, func(c string) bool { return covers(c, need) })
}

func covers(have, need string) bool {
	area, haveRest, ok1 := strings.Cut(have, ":")
	needArea, needRest, ok2 := strings.Cut(need, ":")
	verb, resource, limited := strings.Cut(haveRest, ":")
	needVerb, needResource, named := strings.Cut(needRest, ":")
	if !ok1 || !ok2 || area != "*" && area != needArea || verb != "*" && verb != needVerb {
		return false
	}
	reserved := need == catalog.CapabilityTenantMemory || need == catalog.ReplayAnyRuns
	return !limited && !reserved || resource == "*" || named && resource == needResource
}

// Oversees reports whether capabilities let their holder see the plans of all users of the
// tenant: that of reading its record, and those of granting it to oneself.
func Oversees(caps []string) bool {
	return Covers(caps, "audit:read") || Covers(caps, "admin:directory")
}

// systemTenant is the tenant whose operators may name another one.
const systemTenant = "system"

// TargetTenant is the tenant that an operator's intent acts on.
func TargetTenant(actor, named string) string {
	if named == "" {
		return actor
	}
	return named
}

// ForeignTenant reports whether an operator's intent names another tenant than the actor's own;
// only operators of system may.
func ForeignTenant(actor, typ string, args json.RawMessage) bool {
	if actor == systemTenant {
		return false
	}
	if typ == TypePolicyPush {
		return true // a policy applies to every tenant
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

// ErrForeign refuses an intent that names a foreign tenant.
func ErrForeign() error {
	return intents.Refuse(intents.RBACForbidden, "/intent/args/tenant", "only operators of system may name another tenant")
}
