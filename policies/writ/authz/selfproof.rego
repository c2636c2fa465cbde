package writ.authz

# METADATA
# title: Self-proof
# description: The intent is marked as the one that must always be refused.
# custom:
#   id: writ.selfproof.forbidden
#   hint: leave the label writ.selfproof out of context.labels
deny contains words(rego.metadata.rule()) if input.context.labels["writ.selfproof"] == "forbidden"
