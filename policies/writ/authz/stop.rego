package writ.authz

# METADATA
# title: Stopped
# description: An operator has stopped everything, or this agent or server, for the tenant. What runs may end, and nothing begins.
# custom:
#   id: writ.stop
#   hint: "try again when an operator has it go on: writ resume"
deny contains words(rego.metadata.rule()) if {
	not input.intent.type in goes_on
	stopped
}

# METADATA
# description: Everything is stopped.
stopped if tenant.stop.all

# METADATA
# description: The agent that acts is stopped.
stopped if input.task.agent in tenant.stop.agents

# METADATA
# description: The agent that is asked is stopped.
stopped if input.intent.args.agent in tenant.stop.agents

# METADATA
# description: A server whose skill is named is stopped.
stopped if {
	some server in tenant.stop.servers
	some skill in named
	startswith(skill, concat("", [server, "."]))
}

# METADATA
# title: Approval while stopped
# description: An operator has stopped the tenant, so that nothing is approved. What waits may be rejected.
# custom:
#   id: writ.stop.approval
#   hint: "approve it when an operator has it go on (writ resume), or reject it"
deny contains words(rego.metadata.rule()) if {
	input.intent.type == "hitl.approve"
	input.intent.args.decision in {"approve", "edit"}
	tenant.stop.all
}

# METADATA
# description: >-
#   What goes on: the ends of what runs, what is read, and what operators do. admin.put, which ends a
#   stop, is judged without the tenant's data.
goes_on := {
	"admin.put", "agent.get", "audit.read", "cancel", "grant.revoke", "hitl.approve", "intent.resolve", "key.put", "logs.stream",
	"memory.query", "node.skip", "plan.claim", "plan.close", "plan.get", "policy.push", "read_lines", "read_memory", "record.erase",
	"registry.push", "schedule.delete", "schedule.list", "session.append", "session.close", "session.get", "session.update",
	"skill.approve", "skill.disconnect", "soul.get", "step.finish", "transcript.get", "usage.report", "user.erase",
}
