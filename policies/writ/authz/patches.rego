package writ.authz

# METADATA
# title: Patch that does more than read
# description: The patch of a run adds a node that has an effect, or changes what leads to a node that was there.
# custom:
#   id: writ.patch
#   hint: nothing is changed until enough approvers have approved
hold contains object.union(words(rego.metadata.rule()), terms) if {
	input.intent.type == "graph.patch"
	weighty
}

# METADATA
# description: A node that has an effect.
weighty if {
	some node in input.patch.nodes
	node.effect != "pure"
}

# METADATA
# description: A node that waits for other nodes than before.
weighty if count(input.patch.rewired) > 0
