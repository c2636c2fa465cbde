package writ.authz

# METADATA
# title: Act of a task that has read untrusted content
# description: >-
#   The task has read what the operator does not trust, and the skill acts once or may destroy something.
# custom:
#   id: writ.tainted.act
#   hint: nothing is carried out until enough approvers have approved
hold contains object.union_n([words(rego.metadata.rule()), terms, optional]) if {
	input.intent.type == "skill.call"
	watched
	not tenant.approval.once # else it is held anyway
	guarded
	not input.skill.kind
	some source in sources
	not source.trusted
}

# METADATA
# title: Vendor's intent of a task that has read untrusted content
# description: >-
#   The task has read what the operator does not trust, and the type acts once, or what it does is not
#   known.
# custom:
#   id: writ.tainted.act
#   hint: nothing is carried out until enough approvers have approved
hold contains object.union_n([words(rego.metadata.rule()), terms, optional]) if {
	startswith(input.intent.type, "x.")
	watched
	not repeatable
	some source in sources
	not source.trusted
}

# METADATA
# description: The intent may be carried out twice.
repeatable if input.intent.effect in {"pure", "idempotent"}

# METADATA
# title: Way out for private content
# description: The task has read private content, and the skill may pass on what it gets.
# custom:
#   id: writ.tainted.out
#   hint: nothing is carried out until enough approvers have approved
hold contains object.union_n([words(rego.metadata.rule()), terms, optional]) if {
	passes
	watched
	input.skill.open_world != "no"
	not input.skill.kind
	some source in sources
	source.open_world != "yes"
	not own(source)
}

# METADATA
# description: The intent gives the server what the task has written. A request for the server's lists does not.
passes if input.intent.type == "skill.call"

# METADATA
# description: An address of a resource can have anything in it.
passes if {
	input.intent.type == "resource.read"
	input.intent.args.uri
}

# METADATA
# description: So can the name of a prompt and its arguments.
passes if {
	input.intent.type == "resource.read"
	input.intent.args.prompt
}

default sources := []

# METADATA
# description: Whose content the task has read.
sources := input.task.sources

# METADATA
# description: A server of which nothing is known gets back what it has shown.
own(source) if {
	source.kind == "server"
	input.skill.open_world == "unknown"
	split(input.skill.name, ".")[0] == source.name
}

default watched := true

# METADATA
# description: The tenant's operators want such calls held.
watched := tenant.approval.tainted

default optional := {"optional": true}

# METADATA
# description: Unless they have said so, only what somebody can approve is held.
optional := {} if tenant.approval.tainted
