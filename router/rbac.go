package router

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"aob.dev/writ/intents"
)

// rbac is stage 6: the actor's roles must cover the type's capability and all
// that the order declares; what is declared is also a ceiling. An
// operator's roles come from the directory, everybody else's are those of the grant
// that API key and user row still give.
func (r *Router) rbac(_ context.Context, o *order) error {
	pr := o.env.Principal()
	o.roles = pr.Roles
	if o.env.Signer().Role == intents.RoleOperator {
		roles, found, disabled := o.view.UserRoles(pr.Tenant, pr.UserID)
		if !found || disabled {
			return intents.Refuse(intents.RBACForbidden, "/actor/user_id", "the operator has no role in its tenant")
		}
		o.roles = roles
		if slices.ContainsFunc(o.env.Claimed(), func(role string) bool { return !slices.Contains(roles, role) }) {
			return intents.Refuse(intents.RBACForbidden, "/actor/roles", "actor claims roles that the operator does not have")
		}
		if foreignTenant(o.env) {
			return errForeign()
		}
	}
	if _, known := o.view.Capabilities(pr.Tenant, nil); !known {
		return intents.Refuse(intents.RBACForbidden, "/actor/tenant", "no such tenant")
	}
	if g := o.env.Grant(); g != nil && (o.released || o.view.Rules() >= intents.RulesStrict) {
		roles, disabled := o.view.RolesNow(g)
		if disabled {
			return errDisabled()
		}
		o.roles = roles
	}
	caps, _ := o.view.Capabilities(pr.Tenant, o.roles)
	needed := capability(o)
	if !covered(caps, needed) {
		return intents.Refuse(intents.RBACForbidden, "/actor", "no role of the actor gives "+needed)
	}
	declared := o.env.Constraints().Capabilities
	for _, c := range declared {
		if !covered(caps, c) {
			return intents.Refuse(intents.RBACForbidden, "/constraints/capabilities", "a declared capability is given by no role of the actor")
		}
	}
	if len(declared) > 0 && !covered(declared, needed) {
		return intents.Refuse(intents.RBACForbidden, "/constraints/capabilities", "the order needs "+needed+", which it does not declare")
	}
	o.facts.Roles = slices.Clone(o.roles)
	return nil
}

func errDisabled() error {
	return intents.Refuse(intents.RBACForbidden, "/actor/user_id", "the user or the API key is not there any more")
}

// capability that the order needs: the row's, with the resource where the
// arguments decide it. A soul of one's own is less than the tenant's, and a memory
// for the whole tenant more than one's own.
func capability(o *order) string {
	switch o.env.Type() {
	case "write_memory":
		var a struct {
			Scope string `json:"scope"`
		}
		if json.Unmarshal(o.env.Args(), &a) != nil || a.Scope == "tenant" {
			return capabilityTenantMemory
		}
		return o.row.Capability
	case "soul.put":
		var a struct {
			UserID string `json:"user_id"`
		}
		if json.Unmarshal(o.env.Args(), &a) == nil && a.UserID == o.env.Principal().UserID {
			return o.row.Capability + ":own"
		}
		return o.row.Capability + ":tenant"
	default:
		return o.row.Capability
	}
}

// capabilityTenantMemory lets a user's tasks write what everybody of the tenant
// reads. Only a capability that names the resource gives it: every user has
// memory:*, in logs of before it was one of its own, too.
const capabilityTenantMemory = "memory:write:tenant"

// oversees says whose capabilities let them see the plans of all users of their
// tenant: those who read its record, and those who could give themselves that.
func oversees(caps []string) bool {
	return covered(caps, "audit:read") || covered(caps, "admin:directory")
}

// covered: area:verb[:resource], where * stands for all of a part and a
// capability without resource covers every resource but a reserved one.
func covered(caps []string, needed string) bool {
	return slices.ContainsFunc(caps, func(c string) bool { return covers(c, needed) })
}

func covers(have, need string) bool {
	area, haveRest, ok1 := strings.Cut(have, ":")
	needArea, needRest, ok2 := strings.Cut(need, ":")
	verb, resource, limited := strings.Cut(haveRest, ":")
	needVerb, needResource, named := strings.Cut(needRest, ":")
	if !ok1 || !ok2 || area != "*" && area != needArea || verb != "*" && verb != needVerb {
		return false
	}
	return !limited && need != capabilityTenantMemory || resource == "*" || named && resource == needResource
}
