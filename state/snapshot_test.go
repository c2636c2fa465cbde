package state_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state"
)

// TestOpenJudgesByTheSameRules: a state and one restored from its snapshot agree on who may
// approve.
func TestOpenJudgesByTheSameRules(t *testing.T) {
	l := tell(t)
	put := func(a catalog.AdminPut) {
		args, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		l.take(state.Content{Intent: &state.Intent{
			Type: state.TypeAdminPut, Args: args, Tenant: "system", Decision: intents.Decision{Verdict: intents.Allow, Executor: catalog.ExecutorRouter},
		}})
	}
	put(catalog.AdminPut{New: &catalog.Tenant{ID: "acme"}})
	put(catalog.AdminPut{Tenant: "acme", Role: &catalog.RoleData{Role: "lead", Capabilities: []string{state.CapabilityApprove}}})
	put(catalog.AdminPut{Tenant: "acme", User: &catalog.User{UserID: "ana", Roles: []string{"lead"}}})
	var b bytes.Buffer
	if _, err := l.Snapshot(&b); err != nil {
		t.Fatal(err)
	}
	opened, err := state.Open(&b)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{"acme": {"ana"}}
	for _, s := range []*state.State{l.State, opened} {
		if d := cmp.Diff(want, s.Directory().Tenant("acme").PolicyData().Approvers); d != "" {
			t.Errorf("approvers: -want +got:\n%s", d)
		}
		if got := s.Directory().Tenant("acme").PolicyData().Roles["acme"]["lead"]; len(got) != 1 || got[0] != state.CapabilityApprove {
			t.Errorf("capabilities of a role: %v", got)
		}
	}
}

// TestOpenRefuses bytes that no state wrote.
func TestOpenRefuses(t *testing.T) {
	for _, text := range []string{
		``, `[]`, `{"plans":1}`, `{} {}`,
		`{"intents":{"1":null}}`, `{"unknown":{"a":null}}`, `{"holds":{"1":null}}`,
		`{"intents":{"1":{"plan":"acme/p","fact":-1}}}`, `{"intents":{"1":{"plan":"","fact":0}}}`,
		`{"plans":1} {"tasks":[null]}`, `{"plans":1} {"runs":{"asks":{"shop":null}}}`, `{"plans":1} {"view":{"status":"complete"}}`,
	} {
		if _, err := state.Open(strings.NewReader(text)); err == nil {
			t.Errorf("%s: no error", text)
		}
	}
}
