package writ.authz_test

import data.writ.authz

once := object.union(call, {"skill": {"effect": "once"}})

test_unpinned_skill if {
	every type in ["resource.read", "skill.call", "skill.load"] {
		unpinned := object.union(object.remove(call, ["skill"]), {"intent": {"type": type}})
		deny := authz.deny with input as unpinned with data.directory as directory({})
		ids(deny) == {"writ.skill.unpinned"}
	}
}

loads(skills) := object.union(
	object.remove(call, ["skill", "intent"]),
	{"intent": {"type": "skill.load", "args": {"skills": skills}}, "task": {"skills": skills}},
)

pinned(tenant) := object.union(directory(tenant), {"pins": {"acme": {"outlet_list": {}, "crm.close_ticket": {}}}})

test_several_skills if {
	both := loads(["outlet_list", "crm.close_ticket"])
	deny := authz.deny with input as both with data.directory as pinned({})
	deny == set()
	other := authz.deny with input as both with data.directory as pinned({"skills_allow": ["close_ticket"]})
	ids(other) == {"writ.skill.tenant"}
	unknown := authz.deny with input as loads(["outlet_list", "order_list"]) with data.directory as pinned({})
	ids(unknown) == {"writ.skill.unpinned"}
	beyond := object.union(both, {"task": {"skills": ["outlet_list"]}})
	outside := authz.deny with input as beyond with data.directory as pinned({})
	ids(outside) == {"writ.skill.step"}
}

test_reading_is_pure if {
	reads := object.union(call, {"intent": {"type": "resource.read"}})
	pure := authz.deny with input as object.union(reads, {"skill": {"effect": "pure"}}) with data.directory as directory({})
	pure == set()
	every effect in ["idempotent", "once"] {
		deny := authz.deny with input as object.union(reads, {"skill": {"effect": effect}}) with data.directory as directory({})
		ids(deny) == {"writ.resource.effect"}
	}
}

test_pin_of_another_skill if {
	other := object.union(call, {"skill": {"name": "order_list"}})
	deny := authz.deny with input as other with data.directory as directory({})
	ids(deny) == {"writ.skill.pin"}
}

test_skill_outside_the_tenant if {
	deny := authz.deny with input as call with data.directory as directory({"skills_allow": ["order_list"]})
	ids(deny) == {"writ.skill.tenant"}
}

test_skill_of_the_tenant if {
	deny := authz.deny with input as call with data.directory as directory({"skills_allow": ["outlet_list"]})
	deny == set()
}

test_skill_outside_the_step if {
	other := object.union(call, {"task": {"skills": ["order_list"]}})
	deny := authz.deny with input as other with data.directory as directory({})
	ids(deny) == {"writ.skill.step"}
}

test_task_without_a_task if {
	deny := authz.deny with input as object.remove(call, ["task"]) with data.directory as directory({})
	ids(deny) == {"writ.skill.step"}
}

test_once_is_not_held_unasked if {
	hold := authz.hold with input as once with data.directory as directory({})
	hold == set()
}

test_remote_agent_is_held_by_name_only if {
	agent := object.union(call, {"skill": {"effect": "once", "kind": "agent"}})
	hold := authz.hold with input as agent with data.directory as directory({"approval": {"once": true}})
	count(hold) == 0
	named := authz.hold with input as agent with data.directory as directory({"approval": {"skills": ["outlet_list"]}})
	ids(named) == {"writ.skill.approval"}
}

test_once_is_held_where_the_tenant_says_so if {
	hold := authz.hold with input as once with data.directory as directory({"approval": {"once": true}})
	ids(hold) == {"writ.skill.once"}
	every rule in hold {
		rule.approvers == ["ana", "ben", "cleo"]
		rule.count == 1
		rule.four_eyes
		not rule.within_sec
	}
}

test_one_person_alone_approves_in_person if {
	hold := authz.hold with input as once with data.directory as directory({"alone": "ana", "approval": {"once": true}})
	ids(hold) == {"writ.skill.once"}
	every rule in hold {
		rule.in_person
		not rule.four_eyes
	}
}

test_a_hold_says_how_many_and_how_long if {
	tenant := {"approval": {"once": true, "count": 2, "within_sec": 600}}
	hold := authz.hold with input as once with data.directory as directory(tenant)
	ids(hold) == {"writ.skill.once"}
	every rule in hold {
		rule.count == 2
		rule.within_sec == 600
	}
}

test_pure_is_not_held if {
	hold := authz.hold with input as call with data.directory as directory({"approval": {"once": true}})
	hold == set()
}

test_the_router_counts_who_has_approved if {
	approved := object.union(once, {"approvals": [{"user_id": "ben", "decision": "approve"}]})
	hold := authz.hold with input as approved with data.directory as directory({"approval": {"once": true}})
	ids(hold) == {"writ.skill.once"}
}

test_named_skill_is_held if {
	hold := authz.hold with input as call with data.directory as directory({"approval": {"skills": ["outlet_list"]}})
	ids(hold) == {"writ.skill.approval"}
}

close_ticket := object.union(call, {
	"intent": {"args": {"skill": "crm.close_ticket"}},
	"skill": {"name": "crm.close_ticket"},
	"task": {"skills": ["crm.close_ticket"]},
})

test_skill_of_the_tenant_by_id_and_by_tool if {
	every name in ["crm.close_ticket", "close_ticket"] {
		deny := authz.deny with input as close_ticket with data.directory as directory({"skills_allow": [name]})
		deny == set()
	}
	every name in ["crm", "git.close_ticket", "ticket", "crm.close_ticket.x"] {
		deny := authz.deny with input as close_ticket with data.directory as directory({"skills_allow": [name]})
		ids(deny) == {"writ.skill.tenant"}
	}
}

test_skill_that_people_approve_by_id_and_by_tool if {
	every name in ["crm.close_ticket", "close_ticket"] {
		hold := authz.hold with input as close_ticket with data.directory as directory({"approval": {"skills": [name]}})
		ids(hold) == {"writ.skill.approval"}
	}
	hold := authz.hold with input as close_ticket with data.directory as directory({"approval": {"skills": ["git.close_ticket"]}})
	hold == set()
}

test_destructive_is_held_whatever_the_effect if {
	some effect in ["pure", "idempotent", "once"]
	deleting := object.union(call, {"skill": {"effect": effect, "destructive": true}})
	hold := authz.hold with input as deleting with data.directory as directory({"approval": {"once": true}})
	ids(hold) == {"writ.skill.once"}
}

test_what_destroys_nothing_is_not_held if {
	harmless := object.union(call, {"skill": {"effect": "idempotent", "destructive": false}})
	hold := authz.hold with input as harmless with data.directory as directory({"approval": {"once": true}})
	hold == set()
}

test_names_of_skills_may_have_stars if {
	close_ticket := object.union(call, {
		"intent": {"args": {"skill": "crm.close_ticket"}},
		"skill": {"name": "crm.close_ticket"},
		"task": {"skills": ["crm.close_ticket"]},
	})
	every pattern in ["crm.close_*", "close_*", "*", "crm.*", "*ticket"] {
		hold := authz.hold with input as close_ticket with data.directory as directory({"approval": {"skills": [pattern]}})
		ids(hold) == {"writ.skill.approval"}
		allowed := authz.deny with input as close_ticket with data.directory as directory({"skills_allow": [pattern]})
		allowed == set()
	}
	every pattern in ["git.*", "crm.open_*", "ticket"] {
		hold := authz.hold with input as close_ticket with data.directory as directory({"approval": {"skills": [pattern]}})
		hold == set()
		denied := authz.deny with input as close_ticket with data.directory as directory({"skills_allow": [pattern]})
		ids(denied) == {"writ.skill.tenant"}
	}
}
