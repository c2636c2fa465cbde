package state

import (
	"slices"
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
