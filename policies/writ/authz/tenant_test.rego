package writ.authz_test

import data.writ.authz

# wrong has, for each key, values that cannot be read, and an intent that they are about.
wrong := {
	"approval": {"type": "skill.call", "values": [true, [], {"onse": true}, {"once": "true"}, {"tainted": 1}, {"skills": "refund"}, {"count": "2"}, {"count": 1.5}, {"within_sec": -1}]},
	"driver": {"type": "exec_python", "values": [1, ["namespaces"]]},
	"max_bytes": {"type": "memory.query", "values": [5, {"*": "5"}, {"*": -1}, {"*": null}]},
	"max_steps": {"type": "plan", "values": ["3", 1.5, -1, [3], true]},
	"python": {"type": "exec_python", "values": ["false", 0, {}]},
	"redact": {"type": "memory.query", "values": [["email"], {"*": "email"}, {"*": ["mail"]}, {"*": null}]},
	"skills_allow": {"type": "skill.load", "values": ["outlet_list", [1], {"outlet_list": true}]},
	"alone": {"type": "skill.call", "values": [true, 1, ["ana"]]},
	"stop": {"type": "memory.query", "values": [true, {"al": true}, {"all": true}, {"all": {"user_id": "olga"}}, {"agents": "scout"}, {"servers": [1]}, {"agents": {"scout": true}}, {"reason": 1}]},
	"ttl_max": {"type": "memory.query", "values": [60, {"*": "60"}, ["60"], {"*": null}]},
}

typed(type) := object.union(call, {"intent": {"type": type}})

test_what_cannot_be_read_is_denied if {
	every key, w in wrong {
		every value in w.values {
			deny := authz.deny with input as typed(w.type) with data.directory as directory({key: value})
			"writ.tenant.data" in ids(deny)
		}
	}
}

test_a_mistake_can_be_mended if {
	every key, w in wrong {
		every value in w.values {
			every type in {"admin.put", "admin.stop"} {
				deny := authz.deny with input as typed(type) with data.directory as directory({key: value})
				deny == set()
			}
		}
	}
}

test_it_concerns_its_intents_alone if {
	every key in object.keys(wrong) - {"ttl_max", "max_bytes", "redact", "stop"} {
		deny := authz.deny with input as typed("memory.query") with data.directory as directory({key: wrong[key].values[0]})
		deny == set()
	}
}

test_null_says_nothing if {
	every key, w in wrong {
		deny := authz.deny with input as typed(w.type) with data.directory as directory({key: null})
		none := authz.deny with input as typed(w.type) with data.directory as directory({})
		deny == none
	}
}

test_data_of_other_policies_is_theirs if {
	deny := authz.deny with input as call with data.directory as directory({"x.ours": "anything"})
	deny == set()
}

test_no_bound_of_the_tenant_on_admin_put if {
	deny := authz.deny with input as typed("admin.put") with data.directory as directory({"ttl_max": {"*": 0}})
	deny == set()
}

test_nobody_can_approve if {
	tenant := {"approval": {"once": true, "count": 4}}
	deny := authz.deny with input as once with data.directory as directory(tenant)
	ids(deny) == {"writ.approval.nobody"}
	three := {"approval": {"once": true, "count": 3}}
	none := authz.deny with input as once with data.directory as directory(three)
	none == set()
}
