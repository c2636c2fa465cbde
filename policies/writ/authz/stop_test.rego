package writ.authz_test

import data.writ.authz

stops(intent, stop) if {
	deny := authz.deny with input as intent with data.directory as directory({"stop": stop})
	"writ.stop" in ids(deny)
}

test_everything_is_stopped if {
	every type in {"plan.open", "plan", "step", "exec_python", "workflow.start", "schedule.put", "x.acme.pay"} {
		stops(typed(type), {"all": true, "reason": "leak"})
		not stops(typed(type), {"all": false})
	}
}

test_what_runs_can_end if {
	every type in {"plan.close", "step.finish", "cancel", "session.append", "audit.read", "intent.resolve"} {
		not stops(typed(type), {"all": true})
	}
}

test_a_server_is_stopped if {
	of_crm := object.union(call, {"intent": {"args": {"skill": "crm.refund"}}})
	stops(of_crm, {"servers": ["crm"]})
	not stops(of_crm, {"servers": ["cr", "refund"]})
}

test_an_agent_is_stopped if {
	stops(object.union(call, {"task": {"agent": "scout"}}), {"agents": ["scout"]})
	not stops(object.union(call, {"task": {"agent": "clerk"}}), {"agents": ["scout"]})
	stops(object.union(typed("agent.ask"), {"intent": {"args": {"agent": "scout"}}}), {"agents": ["scout"]})
}

approval(decision) := object.union(typed("hitl.approve"), {"intent": {"args": {"decision": decision}}})

test_what_waits_is_not_approved if {
	approve := authz.deny with input as approval("approve") with data.directory as directory({"stop": {"all": true}})
	ids(approve) == {"writ.stop.approval"}
	reject := authz.deny with input as approval("reject") with data.directory as directory({"stop": {"all": true}})
	reject == set()
}
