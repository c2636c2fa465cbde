package router

import (
	"context"
	"slices"

	"aob.dev/writ/intents"
	"aob.dev/writ/state"
)

// rbac is stage 6: the actor's roles must cover the type's capability and all
// that the order declares; what is declared is also a ceiling. An
// operator's roles come from the directory, everybody else's are those of the grant
// that API key and user row still give.
func (r *Router) rbac(_ context.Context, o *order) error {
	pr, rules := o.env.Principal(), o.view.Rules()
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
		if state.ForeignTenant(pr.Tenant, o.env.Type(), o.env.Args()) {
			return state.ErrForeign()
		}
	}
	if _, known := o.view.Capabilities(pr.Tenant, nil); !known {
		return intents.Refuse(intents.RBACForbidden, "/actor/tenant", "no such tenant")
	}
	if g := o.env.Grant(); g != nil && (o.released || rules >= intents.RulesStrict) {
		roles, disabled := o.view.RolesNow(g)
		if disabled {
			return errDisabled()
		}
		o.roles = roles
	}
	caps, _ := o.view.Capabilities(pr.Tenant, o.roles)
	needed := state.Needed(rules, o.env.Type(), o.row.Capability, o.env.Args(), pr.UserID)
	if !state.Covered(rules, caps, needed) {
		return intents.Refuse(intents.RBACForbidden, "/actor", "no role of the actor gives "+needed)
	}
	declared := o.env.Constraints().Capabilities
	for _, c := range declared {
		if !state.Covered(rules, caps, c) {
			return intents.Refuse(intents.RBACForbidden, "/constraints/capabilities", "a declared capability is given by no role of the actor")
		}
	}
	if len(declared) > 0 && !state.Covered(rules, declared, needed) {
		return intents.Refuse(intents.RBACForbidden, "/constraints/capabilities", "the order needs "+needed+", which it does not declare")
	}
	o.facts.Roles = slices.Clone(o.roles)
	return nil
}

func errDisabled() error {
	return intents.Refuse(intents.RBACForbidden, "/actor/user_id", "the user or the API key is not there any more")
}
