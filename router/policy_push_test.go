package router_test

import (
	"encoding/base64"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/policies"
	"aob.dev/writ/router"
)

// push signs a policy.push of the embedded tree with a change.
func push(w *routertest.World, revision int64, change func(policies.Source)) catalog.PolicyPush {
	w.Helper()
	s := policies.Embedded()
	change(s)
	raw, err := policies.BuildBundle(policies.Tree{Source: s, Revision: revision})
	w.Must(err)
	return catalog.PolicyPush{Revision: revision, Digest: s.Digest(), Bundle: base64.StdEncoding.EncodeToString(raw)}
}

func noSearch(s policies.Source) {
	s["ext/none.rego"] = []byte(`package writ.ext.none

# METADATA
# title: No searches
# description: Nobody searches any more.
# custom:
#   id: none.search
deny contains {"id": "none.search", "reason": "Nobody searches any more."} if {
	input.intent.type == "skill.find"
	input.intent.args.query != "self-proof"
}
`)
}

// TestPolicyPush: an accepted push decides from its own position on, and after a
// restart; a refused one changes nothing.
func TestPolicyPush(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	find := routertest.Intent{By: w.Planner, Type: "skill.find", Args: catalog.SkillFind{Query: "q"}}
	before := w.Want(w.Do(find), intents.OK).Decision.PolicyDigest
	good := push(w, 5, noSearch)
	w.Want(w.Admin("policy.push", good), intents.OK)
	a := w.Want(w.Do(find), intents.PolicyDenied)
	if a.Decision.PolicyDigest != good.Digest || a.Decision.PolicyIDs[0] != "none.search" || good.Digest == before {
		t.Errorf("decided by %s: %v", a.Decision.PolicyDigest, a.Decision.PolicyIDs)
	}
	if w.Dir.View().PolicyDigest() != good.Digest || w.Policy.Engine().Revision() != 5 {
		t.Errorf("in force: %s, revision %d", w.Dir.View().PolicyDigest(), w.Policy.Engine().Revision())
	}

	otherRevision := push(w, 6, noSearch)
	otherRevision.Revision = 7
	otherDigest := push(w, 6, noSearch)
	otherDigest.Digest = before
	for name, bad := range map[string]catalog.PolicyPush{
		"the same revision": push(w, 5, func(policies.Source) {}),
		"an older revision": push(w, 4, func(policies.Source) {}),
		"another revision":  otherRevision,
		"another digest":    otherDigest,
		"no bundle":         {Revision: 9, Digest: before, Bundle: "eA=="},
		"broken":            push(w, 9, func(s policies.Source) { s["x.rego"] = []byte("package x\n\ny if nothing\n") }),
		"without self-proof": push(w, 9, func(s policies.Source) {
			s["authz/authz.rego"] = []byte(strings.Replace(string(s["authz/authz.rego"]), `"deny": deny,`, `"deny": set(),`, 1))
		}),
		"denies all": push(w, 9, func(s policies.Source) {
			s["authz/authz.rego"] = []byte(strings.Replace(string(s["authz/authz.rego"]), `"allow": allow,`, `"allow": false,`, 1))
		}),
	} {
		if a := w.Want(w.Admin("policy.push", bad), intents.MalformedArgs); a.Reason == "" || !strings.HasPrefix(a.Pointer, "/intent/args") {
			t.Errorf("%s: %q at %q", name, a.Reason, a.Pointer)
		}
		if w.Dir.View().PolicyDigest() != good.Digest || w.Policy.Engine().Digest() != good.Digest {
			t.Errorf("%s is in force", name)
		}
	}

	// Only operators of system speak for all tenants.
	w.Want(w.Admin("admin.put", catalog.AdminPut{New: &catalog.Tenant{ID: "acme"}}), intents.OK)
	stranger := w.AddOperator("acme", "eve", "admin")
	w.Want(w.Do(routertest.Intent{By: stranger, Tenant: "acme", User: "eve", Type: "policy.push", Args: push(w, 10, func(policies.Source) {})}), intents.RBACForbidden)

	// Nothing is compiled for users who may not push: they learn nothing of a broken bundle.
	clerk := w.AddOperator("system", "carl", "user")
	broken := push(w, 10, func(s policies.Source) { s["x.rego"] = []byte("package x\n\ny if nothing\n") })
	w.Want(w.Do(routertest.Intent{By: clerk, Tenant: "system", User: "carl", Type: "policy.push", Args: broken}), intents.RBACForbidden)

	embedded, err := policies.New(policies.Embedded())
	w.Must(err)
	w.Policy = policies.NewLive(embedded)
	again := w.Restart()
	if a := again.Want(again.Do(find), intents.PolicyDenied); a.Decision.PolicyDigest != good.Digest {
		t.Errorf("after a restart: decided by %s", a.Decision.PolicyDigest)
	}
	again.Want(again.Admin("policy.push", push(again, 6, func(policies.Source) {})), intents.OK)
	if a := again.Want(again.Do(find), intents.OK); a.Decision.PolicyDigest != before {
		t.Errorf("pushed back: decided by %s", a.Decision.PolicyDigest)
	}
}

// TestPolicyOlder: a router does not start with a bundle that is older than what the record has had
// in force.
func TestPolicyOlder(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	w.Want(w.Admin("policy.push", push(w, 5, noSearch)), intents.OK)
	e, err := policies.NewTree(policies.Tree{Source: policies.Embedded(), Revision: 4})
	w.Must(err)
	r, err := router.New(router.Config{
		Journal: w.Journal, Records: w.Journal, State: w.Dir, Bus: w.Bus, Key: w.Signer, KeySecret: routertest.KeySecret,
		Policy: policies.NewLive(e), PolicyPlace: "a bundle", Now: w.Clock.Now, Log: slog.New(slog.DiscardHandler),
	})
	w.Must(err)
	if err := r.Start(t.Context()); !errors.Is(err, policies.ErrOlder) || r.Ready() {
		t.Errorf("error %v, ready %v", err, r.Ready())
	}
}
