package writ.authz

# METADATA
# description: >-
#   What the tenant's operators have put down; null says nothing. An admin.put is
#   judged without it, so that a mistake can be mended, and so is an admin.stop.
put := {key: value |
	not input.intent.type in {"admin.put", "admin.stop"}
	some key, value in data.directory.tenants[input.actor.tenant]
	value != null
}

# METADATA
# description: The part of it that can be read, for the rules of this package.
tenant := {key: value |
	some key, value in put
	readable(key, value)
}

# METADATA
# title: Tenant data that cannot be read
# description: What the tenant's operators have put down for such intents has a form that cannot be read.
# custom:
#   id: writ.tenant.data
#   hint: have an operator put the tenant's data again; writ doctor says which
deny contains words(rego.metadata.rule()) if {
	some key, value in put
	concerns(key)
	not readable(key, value)
}

# METADATA
# description: The intents that data of the tenant is about; those of no name here are of other policies.
concerned := {
	"alone": {"resource.read", "skill.call", "graph.patch"},
	"approval": {"resource.read", "skill.call", "graph.patch"},
	"driver": {"exec_python"},
	"max_bytes": {input.intent.type},
	"max_steps": {"plan"},
	"python": {"exec_python"},
	"redact": {input.intent.type},
	"stop": {input.intent.type},
	"skills_allow": {"resource.read", "skill.call", "skill.load", "plan"},
	"ttl_max": {input.intent.type},
}

# METADATA
# description: The intent is one that the key is about.
concerns(key) if input.intent.type in concerned[key]

# METADATA
# description: Data of no key here is other policies' to read.
readable(key, _) if not key in object.keys(concerned)

# METADATA
# description: Who is alone.
readable("alone", value) if is_string(value)

# METADATA
# description: Which skills people must approve, how many of them, and for how long it waits.
readable("approval", value) if {
	is_object(value)
	object.keys(value) - {"once", "tainted", "skills", "count", "within_sec"} == set()
	is_boolean(object.get(value, "once", false))
	is_boolean(object.get(value, "tainted", false))
	skill_list(object.get(value, "skills", []))
	bound(object.get(value, "count", 1))
	bound(object.get(value, "within_sec", 1))
}

# METADATA
# description: The weakest sandbox.
readable("driver", value) if is_string(value)

# METADATA
# description: The largest results.
readable("max_bytes", value) if bounds(value)

# METADATA
# description: The longest plan.
readable("max_steps", value) if bound(value)

# METADATA
# description: Whether scripts run.
readable("python", value) if is_boolean(value)

# METADATA
# description: What is removed from results.
readable("redact", value) if {
	is_object(value)
	every kinds in value {
		is_array(kinds)
		every kind in kinds { kind in {"card", "email", "iban", "key", "phone"} }
	}
}

# METADATA
# description: The only skills.
readable("skills_allow", value) if skill_list(value)

# METADATA
# description: What is stopped.
readable("stop", value) if {
	is_object(value)
	object.keys(value) - {"all", "agents", "servers"} == set()
	every by in [value[key] | some key in {"all"}] { stop(by) }
	every key in {"agents", "servers"} {
		every by in object.get(value, key, {}) { stop(by) }
	}
}

# METADATA
# description: Who stopped something.
stop(by) if {
	is_string(by.user_id)
	is_string(by.tenant_id)
	is_string(by.since)
}

# METADATA
# description: The longest lives of intents.
readable("ttl_max", value) if bounds(value)

# METADATA
# description: A list of names of skills, in which * stands for any characters.
skill_list(value) if {
	is_array(value)
	every name in value {
		is_string(name)
		regex.match(`^[A-Za-z0-9_./*-]{1,128}$`, name)
	}
}

# METADATA
# description: Bounds by type of intent.
bounds(value) if {
	is_object(value)
	every one in value { bound(one) }
}

# METADATA
# description: A whole number from 0.
bound(value) if {
	is_number(value)
	value >= 0
	floor(value) == value
}
