package writ.authz

# METADATA
# title: Largest result
# description: The tenant bounds the bytes of a result, by type or for all.
obligations contains {"name": "max_bytes", "value": bytes} if {
	bounds := tenant.max_bytes
	bytes := min([bound |
		some type in ["*", input.intent.type]
		bound := bounds[type]
	])
}

# METADATA
# title: Sandbox driver
# description: The tenant asks for a certain sandbox.
obligations contains {"name": "driver", "value": tenant.driver} if input.intent.type == "exec_python"

# METADATA
# title: Results without personal data
# description: The tenant has personal data and credentials removed from results, by type or for all.
obligations contains {"name": "redact", "value": kinds} if {
	kinds := sort({kind |
		some type in ["*", input.intent.type]
		some kind in tenant.redact[type]
	})
	count(kinds) > 0
}
