# METADATA
# title: Authorization of intents
# description: >-
#   Decides every intent that the router's own checks let through. Rules in this
#   package deny or hold; the directory of tenants is data.directory.
package writ.authz

# METADATA
# description: The answer to the router.
# entrypoint: true
decision := {
	"allow": allow,
	"deny": deny,
	"hold": hold,
	"obligations": obligations,
}

default allow := false

# METADATA
# title: Intents of known signers
# description: >-
#   The router has verified the key, the grant and the capability; an intent that
#   a role key signed for a tenant is allowed unless a rule denies or holds it.
allow if {
	input.signer.role in {"gateway", "manager", "planner", "task", "workflow", "operator"}
	input.actor.tenant != ""
}

# METADATA
# description: The words of a rule, for the one who is refused.
words(rule) := {
	"id": rule.custom.id,
	"reason": rule.description,
	"hint": object.get(rule.custom, "hint", ""),
}
