package writ.authz_test

import data.writ.authz

# by is an operator who stopped something.
by := {"user_id": "olga", "tenant_id": "acme", "since": "2026-11-20T10:00:00.000Z", "reason": "a leak"}

stops(intent, stop) if {
	deny := authz.deny with input as intent with data.directory as directory({"stop": stop})
	"writ.stop" in ids(deny)
}

test_everything_is_stopped if {
	every type in {"plan.open", "plan", "step", "exec_python", "workflow.start", "schedule.put", "x.acme.pay"} {
		stops(typed(type), {"all": by})
		not stops(typed(type), {})
	}
}

test_what_runs_can_end if {
	every type in {"plan.close", "step.finish", "cancel", "session.append", "audit.read", "intent.resolve", "admin.stop"} {
		not stops(typed(type), {"all": by})
	}
}

test_a_server_is_stopped if {
	of_crm := object.union(call, {"intent": {"args": {"skill": "crm.refund"}}})
	stops(of_crm, {"servers": {"crm": by}})
	not stops(of_crm, {"servers": {"cr": by, "refund": by}})
}

test_an_agent_is_stopped if {
	stops(object.union(call, {"task": {"agent": "scout"}}), {"agents": {"scout": by}})
	not stops(object.union(call, {"task": {"agent": "clerk"}}), {"agents": {"scout": by}})
	stops(object.union(typed("agent.ask"), {"intent": {"args": {"agent": "scout"}}}), {"agents": {"scout": by}})
}

approval(decision) := object.union(typed("hitl.approve"), {"intent": {"args": {"decision": decision}}})

test_what_waits_is_not_approved if {
	approve := authz.deny with input as approval("approve") with data.directory as directory({"stop": {"all": by}})
	ids(approve) == {"writ.stop.approval"}
	reject := authz.deny with input as approval("reject") with data.directory as directory({"stop": {"all": by}})
	reject == set()
}

reasons(intent, stop) := {rule.reason |
	some rule in authz.deny with input as intent with data.directory as directory({"stop": stop})
	rule.id in {"writ.stop", "writ.stop.approval"}
}

test_a_refusal_says_who_stopped_what_and_why if {
	reasons(typed("plan.open"), {"all": by}) == {"olga stopped everything at 2026-11-20T10:00:00.000Z: a leak"}
	root := {"user_id": "local", "tenant_id": "system", "since": "2026-11-20T09:00:00.000Z"}
	asked := object.union(typed("agent.ask"), {"intent": {"args": {"agent": "scout"}}})
	reasons(asked, {"all": by, "agents": {"scout": root}}) == {"local (operator of system) stopped the agent scout at 2026-11-20T09:00:00.000Z; olga stopped everything at 2026-11-20T10:00:00.000Z: a leak"}
	reasons(approval("approve"), {"all": by}) == {"olga stopped everything at 2026-11-20T10:00:00.000Z: a leak; nothing is approved"}
}
