package writ.authz_test

import data.writ.authz

patch(nodes, rewired) := {
	"intent": {"type": "graph.patch", "args": {"run_id": "plan_1"}},
	"actor": {"user_id": "ana", "tenant": "acme", "roles": ["user"]},
	"constraints": {"ttl_sec": 120},
	"signer": {"kid": "k1", "role": "planner"},
	"patch": {"nodes": nodes, "rewired": rewired},
	"approvals": [],
}

read := {"id": "a", "type": "function", "fn": "crm.list", "effect": "pure"}

write := {"id": "b", "type": "function", "fn": "crm.put", "effect": "idempotent"}

test_patch_of_pure_nodes_is_not_held if {
	hold := authz.hold with input as patch([read], []) with data.directory as directory({})
	hold == set()
}

test_patch_with_an_effect_is_held_unasked if {
	hold := authz.hold with input as patch([read, write], []) with data.directory as directory({})
	ids(hold) == {"writ.patch"}
	every rule in hold {
		rule.approvers == ["ana", "ben", "cleo"]
		rule.count == 1
		rule.four_eyes
	}
}

test_patch_that_rewires_is_held if {
	hold := authz.hold with input as patch([], ["deploy"]) with data.directory as directory({"approval": {"count": 2}})
	ids(hold) == {"writ.patch"}
	every rule in hold {
		rule.count == 2
	}
}
