package router_test

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/policies"
)

// with is the embedded tree and one module more.
func with(module string) policies.Source {
	source := maps.Clone(policies.Embedded())
	source["review/more.rego"] = []byte(module)
	return source
}

// If two rules hold an intent, only those whom both accept may approve.
func TestApproversSatisfyEveryRule(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	_, err := w.Policy.ReplaceTree(t.Context(), policies.Tree{Source: with(`package writ.ext.hold

# METADATA
# title: Held twice
# description: Only cleo may.
# custom:
#   id: ext.hold
hold contains {"id": "ext.hold", "reason": "Only cleo may.", "approvers": ["cleo", "eve"]} if input.intent.type == "skill.call"
`)}, w.Router.SelfProof)
	w.Must(err)
	w.Approval(`{"skills":["feed"]}`, "ben", "cleo")
	a := w.Want(started(w, catalog.Pure).Call("feed", `{}`), intents.ApprovalRequired)
	if diff := cmp.Diff([]string{"cleo"}, a.Decision.Approvers); diff != "" {
		t.Error(diff)
	}
}

// ttl_max is the router's duty: nobody else can enforce it.
func TestObligationTTLMax(t *testing.T) {
	for value, code := range map[string]intents.Code{"60": intents.OK, "59": intents.PolicyDenied, `"soon"`: intents.PolicyDenied} {
		w := routertest.New(t, routertest.Options{})
		_, err := w.Policy.ReplaceTree(t.Context(), policies.Tree{Source: with(`package writ.authz

# METADATA
# description: Souls are read at once.
obligations contains {"name": "ttl_max", "value": ` + value + `} if input.intent.type == "soul.get"
`)}, w.Router.SelfProof)
		w.Must(err)
		a := w.Do(routertest.Intent{By: w.Manager, Type: "soul.get", Args: catalog.SoulGet{}, TTL: 60})
		if a.Code != code {
			t.Errorf("ttl_max %s for 60 s: %s, want %s", value, a.Code, code)
		}
	}
}
