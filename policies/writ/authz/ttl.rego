package writ.authz

# METADATA
# title: Time to live
# description: The intent asks for a longer ttl_sec than its type may have for this tenant.
# custom:
#   id: writ.ttl.bound
#   hint: sign the intent with a smaller ttl_sec
deny contains words(rego.metadata.rule()) if too_long

# METADATA
# description: Our bounds.
too_long if exceeds(data.defaults.ttl_max)

# METADATA
# description: The tenant's bounds.
too_long if exceeds(tenant.ttl_max)

# METADATA
# description: The bound for all types, or the one for this.
exceeds(bounds) if {
	some type in ["*", input.intent.type]
	input.constraints.ttl_sec > bounds[type]
}
