package writ.authz

# METADATA
# title: Stopped
# description: An operator has stopped everything, or this agent or server, for the tenant. What runs may end, and nothing begins.
# custom:
#   id: writ.stop
#   hint: "try again when an operator lets it go on: writ resume"
deny contains object.union(words(rego.metadata.rule()), {"reason": concat("; ", sort(stops))}) if {
	not input.intent.type in goes_on
	count(stops) > 0
}

# METADATA
# description: Everything is stopped.
stops contains told("everything", tenant.stop.all)

# METADATA
# description: The agent that acts is stopped.
stops contains told(concat(" ", ["the agent", agent]), by) if {
	agent := input.task.agent
	by := tenant.stop.agents[agent]
}

# METADATA
# description: The agent that is asked is stopped.
stops contains told(concat(" ", ["the agent", agent]), by) if {
	agent := input.intent.args.agent
	by := tenant.stop.agents[agent]
}

# METADATA
# description: A server whose skill is named is stopped.
stops contains told(concat(" ", ["the skill server", server]), by) if {
	some server, by in tenant.stop.servers
	some skill in named
	startswith(skill, concat("", [server, "."]))
}

# METADATA
# description: Who stopped what, when and why.
told(what, by) := concat("", [operator(by), " stopped ", what, " at ", by.since, because(by)])

# METADATA
# description: The operator, who may be one of system.
operator(by) := by.user_id if by.tenant_id == input.actor.tenant

# METADATA
# description: An operator of system.
operator(by) := concat("", [by.user_id, " (operator of ", by.tenant_id, ")"]) if by.tenant_id != input.actor.tenant

# METADATA
# description: The reason, if one was given.
because(by) := concat("", [": ", by.reason]) if by.reason

# METADATA
# description: No reason was given.
because(by) := "" if not by.reason

# METADATA
# title: Approval while stopped
# description: An operator has stopped the tenant, so that nothing is approved. What waits may be rejected.
# custom:
#   id: writ.stop.approval
#   hint: "approve it when an operator lets it go on (writ resume), or reject it"
deny contains object.union(words(rego.metadata.rule()), {"reason": concat("", [told("everything", tenant.stop.all), "; nothing is approved"])}) if {
	input.intent.type == "hitl.approve"
	input.intent.args.decision in {"approve", "edit"}
	tenant.stop.all
}

# METADATA
# description: >-
#   What goes on: the ends of what runs, what is read, and what operators do. admin.put and
#   admin.stop are judged without the tenant's data.
goes_on := {
	"admin.put", "admin.stop", "agent.get", "audit.read", "cancel", "grant.revoke", "hitl.approve", "intent.resolve", "key.put", "logs.stream",
	"memory.query", "node.skip", "plan.claim", "plan.close", "plan.get", "policy.push", "read_lines", "read_memory", "record.erase",
	"registry.push", "schedule.delete", "schedule.list", "session.append", "session.close", "session.get", "session.update",
	"skill.approve", "skill.disconnect", "soul.get", "step.finish", "transcript.get", "usage.report", "user.erase",
}
