package router_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/state"
)

func data(key, value string) catalog.AdminPut {
	return catalog.AdminPut{Tenant: "default", Data: &catalog.Data{Key: key, Value: json.RawMessage(value)}}
}

// mistyped are rows that would fail open, with the place of the mistake and a word of its message.
var mistyped = []struct {
	put          catalog.AdminPut
	pointer, why string
}{
	{data("aproval", `{"once":true}`), "/data/key", "did you mean approval?"},
	{data("note", `1`), "/data/key", "unknown key"},
	{data("approval", `{"onse":true}`), "/data/value/onse", "did you mean once?"},
	{data("approval", `{"once":"true"}`), "/data/value/once", "must be boolean"},
	{data("approval", `true`), "/data/value", "must be"},
	{data("approval", `{"skills":"pay"}`), "/data/value/skills", "must be array"},
	{data("approval", `{"once":true,"count":0}`), "/data/value/count", "at least 1"},
	{data("approval", `{"once":true,"within_sec":90000}`), "/data/value/within_sec", "at most 86400"},
	{data("approval", `{"once":true}`), "/data/value", "nobody could meet it"},
	{data("approval", `{"skills":["pay"],"count":2}`), "/data/value", "nobody could meet it"},
	{data("skills_allow", `"pay"`), "/data/value", ""},
	{data("skills_allow", `[1]`), "/data/value", ""},
	{data("max_steps", `"3"`), "/data/value", "must be"},
	{data("max_steps", `1.5`), "/data/value", "must be"},
	{data("python", `"false"`), "/data/value", "must be null or boolean"},
	{data("driver", `"gvizor"`), "/data/value", "must be one of"},
	{data("ttl_max", `60`), "/data/value", "must be"},
	{data("ttl_max", `{"*":"60"}`), "/data/value/*", "must be integer"},
	{data("ttl_max", `{"skil.call":60}`), "/data/value/skil.call", "did you mean skill.call?"},
	{data("max_bytes", `{"plan":-1}`), "/data/value/plan", "at least 0"},
	{data("max_bytes", `{"pland":1}`), "/data/value/pland", "did you mean plan?"},
	{catalog.AdminPut{Role: &catalog.RoleData{Role: "r", Capabilities: []string{"plans:read", "foo"}}}, "/role/capabilities/1", "covers nothing"},
	{catalog.AdminPut{Role: &catalog.RoleData{Role: "r", Capabilities: []string{"*"}}}, "/role/capabilities/0", "covers nothing"},
	{catalog.AdminPut{Role: &catalog.RoleData{Role: "r", Capabilities: []string{"skils:call"}}}, "/role/capabilities/0", "did you mean skills?"},
	{catalog.AdminPut{Role: &catalog.RoleData{Role: "r", Capabilities: []string{"skills:cal"}}}, "/role/capabilities/0", "did you mean call?"},
	{catalog.AdminPut{Role: &catalog.RoleData{Role: "r", Capabilities: []string{"*:raed"}}}, "/role/capabilities/0", "did you mean read?"},
	{catalog.AdminPut{User: &catalog.User{UserID: "u", Roles: []string{"user", "auditer"}}}, "/user/roles/1", "did you mean auditor?"},
	{catalog.AdminPut{APIKey: &catalog.APIKey{ID: "k", Hash: intents.Digest(nil), UserID: "u", MaxRoles: []string{"boss"}}}, "/api_key/max_roles/0", "no such role"},
	{keyNames([]string{"crm.*"}, map[string]string{"crm.list": "get_result"}), "/api_key/rename/crm.list", "another tool"},
	{keyNames(nil, map[string]string{"crm.list": "ask_shop"}), "/api_key/rename/crm.list", "another tool"},
	{keyNames(nil, map[string]string{"crm.list": "same", "crm.show": "same"}), "/api_key/rename/crm.list", "another tool"},
	{keyNames([]string{"crm.*"}, map[string]string{"crm.list": "crm_list", "git/log": "log"}), "/api_key/rename/git~1log", "no skill that the key gives"},
}

// keyNames is an API key with names for tools.
func keyNames(tools []string, rename map[string]string) catalog.AdminPut {
	return catalog.AdminPut{APIKey: &catalog.APIKey{ID: "k", Hash: intents.Digest(nil), UserID: "u", MaxRoles: []string{}, Tools: tools, Rename: rename}}
}

// TestMistypedDirectoryData: each is refused with its place and the expected value.
func TestMistypedDirectoryData(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	for _, c := range mistyped {
		c.put.Tenant = "default"
		a := w.Admin("admin.put", c.put)
		if a.Code != intents.MalformedArgs || a.Pointer != "/intent/args"+c.pointer || !strings.Contains(a.Reason, c.why) || a.Hint == "" {
			raw, _ := json.Marshal(c.put)
			t.Errorf("%s: %s at %s: %s (%s)", raw, a.Code, a.Pointer, a.Reason, a.Hint)
		}
	}
	if got := w.Dir.Misput(nil); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	a := w.Admin("grant.revoke", catalog.GrantRevoke{Tenant: "defualt", Sub: "ana", Before: "2026-11-20T10:00:00Z"})
	if a.Code != intents.MalformedArgs || a.Pointer != "/intent/args/tenant" {
		t.Errorf("grant.revoke in a tenant that is not there: %s at %s", a.Code, a.Pointer)
	}
}

// TestWellTypedDirectoryData: correct data is put.
func TestWellTypedDirectoryData(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	w.Approval(`{"once":true,"skills":["pay"],"count":2,"within_sec":600}`, "ben", "cleo")
	for key, value := range map[string]string{
		"skills_allow": `["pay","notes.add"]`, "max_steps": `3`, "python": `false`, "driver": `"landlock"`,
		"ttl_max": `{"*":60,"skill.call":30,"x.acme.echo":10}`, "max_bytes": `{"*":0}`, "x.ours": `{"any":"thing"}`,
	} {
		w.Data(key, value)
		w.Data(key, `null`)
	}
	for _, c := range state.DefaultRoles() {
		w.Want(w.Admin("admin.put", catalog.AdminPut{Tenant: "default", Role: &c}), intents.OK)
	}
	wide := catalog.RoleData{Role: "wide", Capabilities: []string{"*:*", "*:read", "skills:*", "skills:call:pay", "audit:read", "policy:explain", "x.acme:echo", "souls:write:tenant"}}
	w.Want(w.Admin("admin.put", catalog.AdminPut{Tenant: "default", Role: &wide}), intents.OK)
}

// TestMisput: a recorded row that would be refused today is reported, and can be corrected.
func TestMisput(t *testing.T) {
	dir, next := state.New(), int64(0)
	put := func(a catalog.AdminPut) {
		raw, err := json.Marshal(a)
		if err == nil {
			d := intents.Decision{Verdict: intents.Allow, Executor: catalog.ExecutorRouter}
			err = dir.Take(state.Content{Position: next, Intent: &state.Intent{Position: next, Tenant: "system", Type: "admin.put", Args: raw, Decision: d}})
		}
		if next++; err != nil {
			t.Fatal(err)
		}
	}
	put(catalog.AdminPut{New: &catalog.Tenant{ID: "default"}})
	put(data("approval", `null`))
	for _, c := range mistyped {
		if c.put.Tenant = "default"; c.put.Data == nil || c.put.Data.Key != "approval" {
			put(c.put)
		}
	}
	put(data("approval", `{"onse":true}`))
	put(data("ttl_max", `{"*":"60"}`))
	told := map[string]bool{}
	for _, m := range dir.Misput(nil) {
		if m.Tenant != "default" || m.Reason == "" {
			t.Errorf("%+v", m)
		}
		told[m.Row] = true
	}
	want := map[string]bool{
		"role r": true, "user u": true, "apikey k": true, "data aproval": true, "data note": true, "data approval": true, "data skills_allow": true,
		"data max_steps": true, "data python": true, "data driver": true, "data ttl_max": true, "data max_bytes": true,
	}
	if d := cmp.Diff(want, told); d != "" {
		t.Errorf("(-want +told):\n%s", d)
	}
	for row := range want {
		if key, ok := strings.CutPrefix(row, "data "); ok {
			put(data(key, `null`))
		}
	}
	put(catalog.AdminPut{Tenant: "default", Role: &catalog.RoleData{Role: "r", Capabilities: []string{}}})
	put(catalog.AdminPut{Tenant: "default", User: &catalog.User{UserID: "u", Roles: []string{"boss"}, Disabled: true}})
	put(catalog.AdminPut{Tenant: "default", APIKey: &catalog.APIKey{ID: "k", Hash: intents.Digest(nil), UserID: "u", MaxRoles: []string{"boss"}, Revoked: true}})
	if got := dir.Misput(nil); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}
