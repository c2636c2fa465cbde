package writ.authz

# METADATA
# title: Unpinned skill
# description: The skill has no approved pin, or its description has changed since it was approved.
# custom:
#   id: writ.skill.unpinned
#   hint: "have an operator approve the skill: writ skill approve SERVER.TOOL"
deny contains words(rego.metadata.rule()) if {
	input.intent.type in {"resource.read", "skill.call", "skill.load"}
	unpinned
}

# METADATA
# description: The skill has no pin that fits.
unpinned if {
	not input.intent.args.skills
	not input.skill.digest
}

# METADATA
# description: One of several skills has no pin.
unpinned if {
	some name in input.intent.args.skills
	not data.directory.pins[input.actor.tenant][name]
}

# METADATA
# description: The skills that the intent names.
named contains input.intent.args.skill

# METADATA
# description: The skills that the intent names, where it names several.
named contains input.intent.args.skills[_]

# METADATA
# title: Pin of another skill
# description: The pin is for another skill than the one that the intent names.
# custom:
#   id: writ.skill.pin
deny contains words(rego.metadata.rule()) if {
	input.intent.type in {"resource.read", "skill.call", "skill.load"}
	input.skill.name != input.intent.args.skill
}

# METADATA
# title: Skill outside the tenant's list
# description: The tenant's operators allow other skills only.
# custom:
#   id: writ.skill.tenant
#   hint: "ask an operator to add the skill to the tenant's list: writ tenant data skills_allow '[\"SERVER.TOOL\", …]'"
deny contains words(rego.metadata.rule()) if {
	input.intent.type in {"resource.read", "skill.call", "skill.load"}
	list := tenant.skills_allow
	some skill in named
	not listed(skill, list)
}

# METADATA
# description: A list of the tenant names the skill. In a name * stands for any characters.
listed(skill, list) if {
	some name in skill_names(skill)
	some pattern in list
	glob.match(pattern, null, name)
}

# METADATA
# description: A skill's id, <server>.<tool>, and the name of its tool, by which data of the tenant may name it.
skill_names(id) := {id, substring(id, indexof(id, ".") + 1, -1)}

# METADATA
# title: Skill outside the step
# description: The task was opened for other skills.
# custom:
#   id: writ.skill.step
#   hint: plan a step that names the skill
deny contains words(rego.metadata.rule()) if {
	input.intent.type in {"resource.read", "skill.call", "skill.load"}
	input.signer.role == "task"
	some skill in named
	not skill in step_skills
}

default step_skills := []

# METADATA
# description: The skills of the step that the task was opened for.
step_skills := input.task.skills

# METADATA
# title: Skill that acts once or may destroy something
# description: >-
#   The tenant wants named people to approve skills that act once or may destroy something,
#   however often they may be repeated.
# custom:
#   id: writ.skill.once
#   hint: nothing is carried out until enough approvers have approved
hold contains object.union(words(rego.metadata.rule()), terms) if {
	input.intent.type == "skill.call"
	tenant.approval.once
	guarded
	not input.skill.kind
}

# METADATA
# description: A call cannot be repeated.
guarded if input.skill.effect == "once"

# METADATA
# description: A call may destroy something.
guarded if input.skill.destructive

# METADATA
# title: Reading that is not approved as harmless
# description: Reading the resources and prompts of a server is approved as pure, or not at all.
# custom:
#   id: writ.resource.effect
#   hint: "have an operator approve it as pure: writ skill approve SERVER.resources/read --effect pure"
deny contains words(rego.metadata.rule()) if {
	input.intent.type == "resource.read"
	input.skill.effect != "pure"
}

# METADATA
# title: Skill that the tenant names
# description: The tenant wants named people to approve calls of this skill.
# custom:
#   id: writ.skill.approval
#   hint: nothing is carried out until enough approvers have approved
hold contains object.union(words(rego.metadata.rule()), terms) if {
	input.intent.type in {"resource.read", "skill.call"}
	listed(input.intent.args.skill, tenant.approval.skills)
}

# METADATA
# title: Nobody can approve
# description: The tenant wants more people to approve this than there are.
# custom:
#   id: writ.approval.nobody
#   hint: >-
#     give somebody else the role: writ user put NAME --role approver, and a key to approve with: writ apikey create NAME --user NAME --role approver;
#     or have calls wait for nobody: writ tenant data approval '{"once": false}'
deny contains words(rego.metadata.rule()) if {
	some rule in hold
	not rule.optional
	count(rule.approvers) < rule.count
}

# METADATA
# description: >-
#   What a hold waits for. The router counts who has approved.
terms := object.union_n([
	{"approvers": approvers, "count": object.get(tenant, ["approval", "count"], 1)},
	eyes,
	{"within_sec": within | within := tenant.approval.within_sec},
])

default eyes := {"four_eyes": true}

# METADATA
# description: >-
#   By four_eyes those who asked have never approved. A person who is alone with
#   a new writ does, in person.
eyes := {"in_person": true} if is_string(tenant.alone)

# METADATA
# description: Who may approve for the tenant, sorted.
approvers := sort([who | some who in data.directory.approvers[input.actor.tenant]])
