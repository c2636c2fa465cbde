package writ.authz_test

import data.writ.authz

# call is a task's call of a pinned skill within its step.
call := {
	"intent": {"type": "skill.call", "args": {"skill": "outlet_list", "input": {}}},
	"actor": {"user_id": "ana", "tenant": "acme", "roles": ["user"]},
	"constraints": {
		"issued_at": "2026-11-20T10:00:00.000Z",
		"ttl_sec": 120,
		"audience": "writ/test",
		"idempotency_key": "k",
	},
	"context": {"plan_id": "plan_1", "step": 1, "task_id": "task_1"},
	"signer": {"kid": "k1", "role": "task"},
	"task": {"task_id": "task_1", "plan_id": "plan_1", "step": 1, "skills": ["outlet_list"]},
	"plan": {"plan_id": "plan_1", "status": "executing"},
	"skill": {"name": "outlet_list", "digest": "sha256:00", "effect": "pure"},
	"approvals": [],
	"now": "2026-11-20T10:00:01.000Z",
}

directory(tenant) := {
	"tenants": {"acme": tenant},
	"roles": {},
	"pins": {},
	"approvers": {"acme": ["ana", "ben", "cleo"]},
}

ids(rules) := {rule.id | some rule in rules}

test_allowed if {
	d := authz.decision with input as call with data.directory as directory({})
	d == {"allow": true, "deny": set(), "hold": set(), "obligations": set()}
}

test_denied_without_signer if {
	bare := object.remove(call, ["signer"])
	not authz.allow with input as bare with data.directory as directory({})
}

test_denied_for_an_unknown_role if {
	other := object.union(call, {"signer": {"role": "ledger"}})
	not authz.allow with input as other with data.directory as directory({})
}

test_selfproof if {
	marked := object.union(call, {"context": {"labels": {"writ.selfproof": "forbidden"}}})
	deny := authz.deny with input as marked with data.directory as directory({})
	ids(deny) == {"writ.selfproof.forbidden"}
}

test_words_come_from_metadata if {
	marked := object.union(call, {"context": {"labels": {"writ.selfproof": "forbidden"}}})
	deny := authz.deny with input as marked with data.directory as directory({})
	some rule in deny
	rule.reason == "The intent is marked as the one that must always be refused."
	rule.hint == "leave the label writ.selfproof out of context.labels"
}
