package writ.authz

# METADATA
# title: Time to live
# description: The intent asks for a longer ttl_sec than its type may have for this tenant.
# custom:
#   id: writ.ttl.bound
#   hint: sign the intent with a smaller ttl_sec
deny contains words(rego.metadata.rule()) if input.constraints.ttl_sec > ttl_max

# METADATA
# description: >-
#   The least of the bounds that apply: ours and the tenant's, for all types and
#   for this one.
ttl_max := min([bound |
	some bounds in [data.defaults.ttl_max, object.get(tenant, "ttl_max", {})]
	some type in ["*", input.intent.type]
	bound := bounds[type]
])
