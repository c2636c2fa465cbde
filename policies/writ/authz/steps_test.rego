package writ.authz_test

import data.writ.authz

planned(steps) := object.union(object.remove(call, ["intent"]), {
	"intent": {"type": "plan", "args": {"plan_id": "plan_1", "steps": steps}},
	"signer": {"role": "planner"},
})

script := object.union(object.remove(call, ["intent"]), {"intent": {
	"type": "exec_python",
	"args": {"script": "print(1)"},
}})

test_ended_plan if {
	every status in ["complete", "failed", "needs_input"] {
		late := object.union(call, {"plan": {"status": status}})
		deny := authz.deny with input as late with data.directory as directory({})
		ids(deny) == {"writ.plan.ended"}
	}
}

test_steps_of_a_plan if {
	steps := [{"step": 1, "skills": []}, {"step": 2, "skills": []}]
	deny := authz.deny with input as planned(steps) with data.directory as directory({"max_steps": 1})
	ids(deny) == {"writ.plan.steps"}
	none := authz.deny with input as planned(steps) with data.directory as directory({"max_steps": 2})
	none == set()
}

test_skills_of_a_plan if {
	steps := [{"step": 1, "skills": ["outlet_list", "order_list"]}]
	deny := authz.deny with input as planned(steps) with data.directory as directory({"skills_allow": ["outlet_list"]})
	ids(deny) == {"writ.plan.skills"}
	none := authz.deny with input as planned(steps) with data.directory as directory({})
	none == set()
}

test_scripts_switched_off if {
	deny := authz.deny with input as script with data.directory as directory({"python": false})
	ids(deny) == {"writ.python.off"}
	none := authz.deny with input as script with data.directory as directory({"python": true})
	none == set()
}

test_obligations if {
	tenant := {"max_bytes": {"*": 1000, "exec_python": 500}, "driver": "namespaces"}
	duties := authz.obligations with input as script with data.directory as directory(tenant)
	duties == {{"name": "max_bytes", "value": 500}, {"name": "driver", "value": "namespaces"}}
	others := authz.obligations with input as call with data.directory as directory(tenant)
	others == {{"name": "max_bytes", "value": 1000}}
}

test_redact if {
	tenant := {"redact": {"*": ["key"], "exec_python": ["email", "key", "card"]}}
	duties := authz.obligations with input as script with data.directory as directory(tenant)
	duties == {{"name": "redact", "value": ["card", "email", "key"]}}
	others := authz.obligations with input as call with data.directory as directory(tenant)
	others == {{"name": "redact", "value": ["key"]}}
	none := authz.obligations with input as call with data.directory as directory({"redact": {"exec_python": ["card"], "skill.call": []}})
	none == set()
}
