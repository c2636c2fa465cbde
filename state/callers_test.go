package state

import (
	"slices"
	"strings"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// TestCallerByToken: who comes with an access token has no row of an API key. The user's row bounds its
// roles, and every approved skill is its own; a grant of an API key is not taken for it.
func TestCallerByToken(t *testing.T) {
	ana := intents.CallerByToken("https://login.example", "s-1")
	if ana == intents.CallerByToken("https://login.example", "s-2") || intents.CallerOf(intents.ClientOf(ana)) != ana || intents.KeyOfClient(ana) != "" || intents.CallerOf(intents.ClientOf("k")) != "k" {
		t.Fatal(ana)
	}
	d := &Directory{tenants: map[string]*tenant{"acme": {
		Users: map[string]catalog.User{"ben": {UserID: "ben", Roles: []string{"user"}}, "eve": {UserID: "eve", Disabled: true}},
		Pins:  map[string]intents.Pin{"crm.list": {Skill: "crm.list"}},
	}}}
	for user, want := range map[string][]string{"ana": {"user", "approver"}, "ben": {"user"}, "eve": nil} {
		got, disabled := d.RolesNow("acme", user, ana, []string{"user", "approver"})
		if !slices.Equal(got, want) || disabled != (want == nil) {
			t.Errorf("%s: %v %v", user, got, disabled)
		}
	}
	if pins := d.ClientPins("acme", ana); len(pins) != 1 {
		t.Errorf("pins %v", pins)
	}
	if _, disabled := d.RolesNow("acme", "ana", "k", []string{"user"}); !disabled || len(d.ClientPins("acme", "k")) != 0 {
		t.Error("a key that does not exist acts")
	}
	if _, disabled := d.RolesNow("none", "ana", ana, []string{"user"}); !disabled {
		t.Error("a tenant that does not exist has a user")
	}
	if !byClient(ana, ana, false) || byClient(ana, ana, true) || byClient(ana, intents.ClientOf("k"), false) || byClient("k", ana, false) {
		t.Error("a plan takes the grant of another caller")
	}
}

// TestClientPinNames: a key's names come before those of approvals. Its groups are put before the others',
// the longest pattern first, and no two skills of a key have one name.
func TestClientPinNames(t *testing.T) {
	of := &tenant{
		Pins: map[string]intents.Pin{}, Names: map[string]string{"crm.list": "list", "crm.close": "close", "git.log": "log", "git.tickets": "tickets", "x.crm__y": "git__tickets"},
		Keys: map[string]catalog.APIKey{
			"plain":   {},
			"renamed": {Rename: map[string]string{"crm.list": "tickets"}},
			"swapped": {Rename: map[string]string{"crm.list": "close", "crm.close": "list"}},
			"grouped": {Rename: map[string]string{"crm.list": "desk"}, Group: map[string]string{"*": "all", "crm.*": "support", "git.t*": "repo", "git.*g": "code"}},
		},
	}
	for skill, name := range of.Names {
		of.Pins[skill] = intents.Pin{Skill: skill, Name: name}
	}
	d := &Directory{tenants: map[string]*tenant{"acme": of}}
	for key, want := range map[string]string{
		"plain":   "close list log tickets git__tickets",
		"renamed": "close tickets log git__tickets_e0f25fc3 git__tickets",
		"swapped": "list close log tickets git__tickets",
		"grouped": "support__close desk code__log repo__tickets all__git__tickets",
	} {
		var got []string
		for _, pin := range d.ClientPins("acme", key) {
			got = append(got, pin.Name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %s", key, got, want)
		}
	}
	for name, want := range map[string]int{"tickets": 1, "list": 0, "lists": 0, "run_task": 1, "ask_": 1, "git__tickets": 1} {
		if got := of.misnamed(catalog.APIKey{Rename: map[string]string{"crm.list": name}}); len(got) != want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if got := of.misnamed(of.Keys["swapped"]); len(got) != 0 {
		t.Errorf("%v", got)
	}
	if got := of.misnamed(catalog.APIKey{Tools: []string{"crm.*"}, Rename: map[string]string{"crm.list": "tickets"}}); len(got) != 0 {
		t.Errorf("a name of a tool that the key does not give: %v", got)
	}
}
