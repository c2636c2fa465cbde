package writ.authz

# METADATA
# title: Work on a plan that has ended
# description: The plan of this task is complete or failed, or has asked its user.
# custom:
#   id: writ.plan.ended
deny contains words(rego.metadata.rule()) if {
	input.signer.role == "task"
	input.plan.status in {"complete", "failed", "needs_input"}
}

# METADATA
# title: Plan with too many steps
# description: The tenant allows fewer steps in a plan.
# custom:
#   id: writ.plan.steps
#   hint: plan with fewer steps
deny contains words(rego.metadata.rule()) if {
	input.intent.type == "plan"
	count([1 | input.intent.args.steps[_].step]) > tenant.max_steps
}

# METADATA
# title: Plan with a skill outside the tenant's list
# description: A step of the plan names a skill that the tenant's operators do not allow.
# custom:
#   id: writ.plan.skills
#   hint: plan with skills of the tenant's list
deny contains words(rego.metadata.rule()) if {
	input.intent.type == "plan"
	list := tenant.skills_allow
	some skill in input.intent.args.steps[_].skills
	not listed(skill, list)
}

# METADATA
# title: Scripts are switched off
# description: The tenant's operators allow no scripts.
# custom:
#   id: writ.python.off
#   hint: "plan without exec_python, or ask an operator to allow it: writ tenant data python true"
deny contains words(rego.metadata.rule()) if {
	input.intent.type == "exec_python"
	tenant.python == false
}
