package writ.authz_test

import data.writ.authz

# call_of a skill by a task that has read some sources.
call_of(skill, read) := object.union(call, {
	"intent": {"args": {"skill": skill.name}},
	"skill": skill,
	"task": {"skills": [skill.name], "sources": read},
})

# read_of a server by a task that has read private content.
read_of(args) := object.union(call_of(looks("yes"), [from("crm", true, "no")]), {"intent": {"type": "resource.read", "args": args}})

from(name, trusted, world) := {"kind": "server", "name": name, "trusted": trusted, "open_world": world}

acts := {"name": "shop.pay", "effect": "once", "destructive": true, "open_world": "no", "trusted": true}

looks(world) := {"name": "web.get", "effect": "pure", "destructive": false, "open_world": world, "trusted": false}

unsaid := {}

many := {"kind": "many", "name": "many", "trusted": false, "open_world": "unknown"}

paper := {"kind": "document", "name": "sha256:0", "trusted": false, "open_world": "unknown"}

test_acts_of_the_untainted_go if {
	every read in [[], [from("crm", true, "no")], [from("news", true, "yes"), from("crm", true, "no")]] {
		hold := authz.hold with input as call_of(acts, read) with data.directory as directory(unsaid)
		hold == set()
	}
}

test_acts_of_the_tainted_are_held if {
	every read in [[from("web", false, "yes")], [from("crm", true, "no"), from("web", false, "unknown")], [paper], [many], [{"kind": "agent", "name": "help", "trusted": false, "open_world": "unknown"}]] {
		hold := authz.hold with input as call_of(acts, read) with data.directory as directory(unsaid)
		ids(hold) == {"writ.tainted.act"}
		every rule in hold {
			rule.optional
			rule.approvers == ["ana", "ben", "cleo"]
		}
	}
}

test_destructive_is_held_however_often if {
	deletes := object.union(acts, {"effect": "idempotent"})
	hold := authz.hold with input as call_of(deletes, [paper]) with data.directory as directory(unsaid)
	ids(hold) == {"writ.tainted.act"}
	harmless := object.union(deletes, {"destructive": false})
	none := authz.hold with input as call_of(harmless, [paper]) with data.directory as directory(unsaid)
	none == set()
}

test_private_content_does_not_go_out if {
	every read in [[from("crm", true, "no")], [from("crm", false, "unknown")], [paper], [many]] {
		every world in ["yes", "unknown"] {
			hold := authz.hold with input as call_of(looks(world), read) with data.directory as directory(unsaid)
			ids(hold) == {"writ.tainted.out"}
		}
		inside := authz.hold with input as call_of(looks("no"), read) with data.directory as directory(unsaid)
		inside == set()
	}
}

test_private_content_does_not_go_out_in_an_address if {
	every args in [{"uri": "https://elsewhere.example/?q=secret"}, {"prompt": "secret"}] {
		hold := authz.hold with input as read_of(args) with data.directory as directory(unsaid)
		ids(hold) == {"writ.tainted.out"}
	}
	lists := authz.hold with input as read_of({}) with data.directory as directory(unsaid)
	lists == set()
}

test_public_content_goes_out if {
	hold := authz.hold with input as call_of(looks("yes"), [from("news", false, "yes")]) with data.directory as directory(unsaid)
	hold == set()
}

test_an_unknown_server_gets_back_its_own if {
	own := authz.hold with input as call_of(looks("unknown"), [from("web", false, "unknown")]) with data.directory as directory(unsaid)
	own == set()
	other := authz.hold with input as call_of(looks("unknown"), [from("we", false, "unknown")]) with data.directory as directory(unsaid)
	ids(other) == {"writ.tainted.out"}
	public := authz.hold with input as call_of(looks("yes"), [from("web", true, "no")]) with data.directory as directory(unsaid)
	ids(public) == {"writ.tainted.out"}
}

test_operators_switch_it if {
	off := authz.hold with input as call_of(acts, [paper]) with data.directory as directory({"approval": {"tainted": false}})
	off == set()
	on := authz.hold with input as call_of(acts, [paper]) with data.directory as directory({"approval": {"tainted": true}})
	ids(on) == {"writ.tainted.act"}
	every rule in on { not rule.optional }
	deny := authz.deny with input as call_of(acts, [paper]) with data.directory as directory({"approval": {"tainted": true, "count": 4}})
	ids(deny) == {"writ.approval.nobody"}
	few := authz.deny with input as call_of(acts, [paper]) with data.directory as directory({"approval": {"count": 4}})
	few == set()
}

test_what_is_held_anyway_is_not_held_twice if {
	hold := authz.hold with input as call_of(acts, [paper]) with data.directory as directory({"approval": {"once": true}})
	ids(hold) == {"writ.skill.once"}
}

test_remote_agents_get_their_messages if {
	agent := {"name": "help.handle_message", "effect": "once", "destructive": true, "open_world": "unknown", "trusted": false, "kind": "agent"}
	hold := authz.hold with input as call_of(agent, [paper]) with data.directory as directory(unsaid)
	hold == set()
}

# of_vendor is an intent of a vendor's type.
of_vendor(effect, read) := object.union(
	object.remove(call_of(acts, read), ["skill", "intent"]),
	{"intent": object.union({"type": "x.acme.pay", "args": {}}, effect)},
)

test_types_of_vendors_are_held_like_skills if {
	every effect in [{"effect": "once"}, {}] {
		hold := authz.hold with input as of_vendor(effect, [paper]) with data.directory as directory(unsaid)
		ids(hold) == {"writ.tainted.act"}
	}
	every effect in [{"effect": "pure"}, {"effect": "idempotent"}] {
		none := authz.hold with input as of_vendor(effect, [paper]) with data.directory as directory(unsaid)
		none == set()
	}
	clean := authz.hold with input as of_vendor({"effect": "once"}, [from("crm", true, "no")]) with data.directory as directory(unsaid)
	clean == set()
	off := authz.hold with input as of_vendor({"effect": "once"}, [paper]) with data.directory as directory({"approval": {"tainted": false}})
	off == set()
}
