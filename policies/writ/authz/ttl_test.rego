package writ.authz_test

import data.writ.authz

signed(type, ttl) := object.union(call, {"intent": {"type": type}, "constraints": {"ttl_sec": ttl}})

test_ttl_default if {
	deny := authz.deny with input as signed("read_memory", 300) with data.directory as directory({})
	deny == set()
}

test_ttl_of_a_type if {
	deny := authz.deny with input as signed("intent.resolve", 121) with data.directory as directory({})
	ids(deny) == {"writ.ttl.bound"}
}

test_ttl_of_a_tenant if {
	tenant := {"ttl_max": {"*": 60}}
	deny := authz.deny with input as signed("read_memory", 61) with data.directory as directory(tenant)
	ids(deny) == {"writ.ttl.bound"}
}

test_ttl_of_a_tenant_and_type if {
	tenant := {"ttl_max": {"exec_python": 30}}
	deny := authz.deny with input as signed("exec_python", 31) with data.directory as directory(tenant)
	ids(deny) == {"writ.ttl.bound"}
	other := authz.deny with input as signed("read_memory", 31) with data.directory as directory(tenant)
	other == set()
}

test_ttl_cannot_be_widened_by_a_tenant if {
	tenant := {"ttl_max": {"intent.resolve": 300}}
	deny := authz.deny with input as signed("intent.resolve", 200) with data.directory as directory(tenant)
	ids(deny) == {"writ.ttl.bound"}
}
