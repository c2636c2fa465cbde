package router_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
	"github.com/open-policy-agent/opa/v1/types"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/policies"
	"aob.dev/writ/router"
	"aob.dev/writ/storage"
)

// shadowed is a world whose router tries shadow policies.
type shadowed struct {
	*routertest.World
	stop func()
}

func withShadows(w *routertest.World) *shadowed {
	ctx, cancel := context.WithCancel(w.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = w.Router.WatchShadow(ctx) // its end has no error
	}()
	s := &shadowed{w, func() { cancel(); <-ended }}
	w.Cleanup(s.stop)
	return s
}

// value is tenant data that begins the trial of a tree.
func (s *shadowed) value(tree policies.Source) json.RawMessage {
	raw, err := policies.BuildBundle(policies.Tree{Source: tree, Revision: 1})
	s.Must(err)
	v, err := json.Marshal(catalog.PolicyShadow{Since: s.Clock.Now(), Digest: tree.Digest(), Bundle: base64.StdEncoding.EncodeToString(raw)})
	s.Must(err)
	return v
}

func (s *shadowed) put(tenant string, value json.RawMessage) *intents.Answer {
	s.Helper()
	return s.Admin("admin.put", catalog.AdminPut{Tenant: tenant, Data: &catalog.Data{Key: catalog.PolicyShadowKey, Value: value}})
}

// try begins the trial of a tree, and waits until the router has it.
func (s *shadowed) try(tree policies.Source) {
	s.Helper()
	s.Want(s.put(storage.SystemTenant, s.value(tree)), intents.OK)
	s.until(func(r *router.Shadow) bool { return r.Since.Equal(s.Clock.Now()) })
}

// until waits for a report.
func (s *shadowed) until(is func(*router.Shadow) bool) (report *router.Shadow) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), 20*time.Second)
	defer cancel()
	if clock.Every(ctx, 10*time.Millisecond, func() bool {
		var err error
		report, err = s.Router.Shadow(ctx)
		s.Must(err)
		return report != nil && is(report)
	}) != nil {
		s.Fatalf("it never comes: %+v", report)
	}
	return report
}

// find searches; the trees of these tests decide it otherwise.
func (s *shadowed) find(query string) *intents.Answer {
	s.Helper()
	return s.Want(s.Do(routertest.Intent{By: s.Planner, Type: "skill.find", Args: catalog.SkillFind{Query: query}}), intents.OK)
}

// TestShadow: what is decided is tried under the shadow policy and decided as before; differences are
// reported, also after a restart, until the trial ends.
func TestShadow(t *testing.T) {
	stricter := policies.Embedded()
	noSearch(stricter)
	for name, tree := range map[string]policies.Source{
		"a tree": stricter, "an extension": {"none.rego": stricter["ext/none.rego"]},
	} {
		t.Run(name, func(t *testing.T) {
			store := new(routertest.Document)
			s := withShadows(routertest.New(t, routertest.Options{ShadowStore: store}))
			if r, err := s.Router.Shadow(t.Context()); r != nil || err != nil {
				t.Fatalf("before any: %+v, %v", r, err)
			}
			s.try(tree)
			a := s.find("a secret")
			s.NewPlan("p1").Open()
			r := s.until(func(r *router.Shadow) bool { return r.Total().Decided == 2 })
			want := router.Shadow{
				Digest: tree.Digest(), Since: s.Clock.Now(), Until: s.Clock.Now().Add(router.ShadowTerm),
				Tenants: map[string]router.ShadowCounts{"default": {Decided: 2, Differ: 1}},
				Groups:  []router.ShadowGroup{{Tenant: "default", Type: "skill.find", Rule: "none.search", Before: intents.Allow, After: intents.Deny, Count: 1}},
				Differences: []router.ShadowDifference{{
					IntentID: a.IntentID, Tenant: "default", Type: "skill.find", At: s.Clock.Now(),
					Before: router.ShadowDecision{Verdict: intents.Allow}, After: router.ShadowDecision{Verdict: intents.Deny, Rules: []string{"none.search"}},
				}},
			}
			if d := cmp.Diff(&want, r); d != "" {
				t.Error(d)
			}
			if other := r.Of("system"); len(other.Groups)+len(other.Differences) != 0 || other.Total() != (router.ShadowCounts{}) {
				t.Errorf("another tenant reads %+v", other)
			}

			s.stop()
			if doc, _ := store.Get(t.Context()); strings.Contains(string(doc), "secret") {
				t.Errorf("the report has an argument: %s", doc)
			}
			s = withShadows(s.Restart())
			again := s.find("another secret")
			r = s.until(func(r *router.Shadow) bool { return r.Total().Differ == 2 })
			if len(r.Differences) != 2 || r.Differences[1].IntentID != again.IntentID || r.Groups[0].Count != 2 {
				t.Errorf("after a restart: %+v", r)
			}

			s.Want(s.put(storage.SystemTenant, json.RawMessage("null")), intents.OK)
			r = s.until(func(r *router.Shadow) bool { return r.Ended != "" })
			s.find("nobody looks")
			if now, _ := s.Router.Shadow(t.Context()); r.Ended != "an operator ended it" || now.Total() != r.Total() {
				t.Errorf("%+v, then %+v", r, now)
			}

			s.Clock.Move(time.Second)
			s.try(tree) // anew
			s.Clock.Move(router.ShadowTerm)
			if r := s.until(func(r *router.Shadow) bool { return r.Ended != "" }); r.Ended != "its 14 days were over" || r.Total().Differ != 0 {
				t.Errorf("%+v", r)
			}
		})
	}
}

// TestShadowOfHolds: a difference in who must approve, and in obligations, is one.
func TestShadowOfHolds(t *testing.T) {
	s := withShadows(routertest.New(t, routertest.Options{}))
	two := policies.Embedded()
	two["ext/two.rego"] = []byte(`package writ.ext.two

# METADATA
# title: Two
# description: Two people look.
# custom:
#   id: two.look
hold contains {"id": "two.look", "reason": "Two people look.", "approvers": ["ben", "cleo"], "count": 2} if {
	input.intent.type == "skill.call"
}
`)
	s.try(two)
	x := heldCall(s.World, catalog.Once, `{"once":true}`)
	held := router.ShadowGroup{Tenant: "default", Type: "skill.call", Rule: "two.look", Before: intents.Hold, After: intents.Hold, Count: 1}
	if r := s.until(func(r *router.Shadow) bool { return r.Total().Differ == 1 }); r.Groups[0] != held {
		t.Errorf("%+v", r.Groups)
	}
	if got := x.state(x.says("ben", catalog.DecisionApprove)); got.State != catalog.ApprovalReleased {
		t.Fatalf("%+v", got)
	}
	s.Want(x.outcome(), intents.OK)
	released := held
	released.Before = intents.Allow
	r := s.until(func(r *router.Shadow) bool { return r.Total().Differ == 2 })
	if d := cmp.Diff([]router.ShadowGroup{held, released}, r.Groups); d != "" {
		t.Error(d)
	}
}

// TestShadowBounds: of differences the newest are kept, and of their kinds the first, with a counter
// for all others.
func TestShadowBounds(t *testing.T) {
	s := router.ManyDifferences(3000)
	last := s.Groups[len(s.Groups)-1]
	if len(s.Differences) != 1000 || s.Differences[999].Tenant != "t2999" || len(s.Groups) != 1000 || last.Rule != "others" || last.Count != 2001 {
		t.Errorf("%d differences, %d kinds, the last %+v", len(s.Differences), len(s.Groups), last)
	}
	if len(s.Newest()) != 10 || s.Newest()[0].Tenant != "t2999" {
		t.Errorf("newest: %+v", s.Newest())
	}
}

// TestShadowElsewhere: a router that does not decide reports what the one that decides has stored.
func TestShadowElsewhere(t *testing.T) {
	store := new(routertest.Document)
	s := withShadows(routertest.New(t, routertest.Options{ShadowStore: store}))
	tree := policies.Embedded()
	noSearch(tree)
	s.try(tree)
	s.find("q")
	want := s.until(func(r *router.Shadow) bool { return r.Total().Differ == 1 })
	s.stop()
	over := newTerm(0)
	over.over.Store(true)
	s.InTerm(over)
	other := s.Reopen()
	got, err := other.Router.Shadow(t.Context())
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Error(d, err)
	}
}

// TestShadowRefused: what could never be in force is not tried, and only tenant system has a shadow.
func TestShadowRefused(t *testing.T) {
	s := withShadows(routertest.New(t, routertest.Options{}))
	good := func(change func(*catalog.PolicyShadow)) json.RawMessage {
		var p catalog.PolicyShadow
		s.Must(json.Unmarshal(s.value(policies.Embedded()), &p))
		change(&p)
		v, err := json.Marshal(p)
		s.Must(err)
		return v
	}
	broken := policies.Embedded()
	broken["x.rego"] = []byte("package x\n\ny if nothing\n")
	allowsAll := policies.Embedded()
	allowsAll["authz/authz.rego"] = []byte(strings.Replace(string(allowsAll["authz/authz.rego"]), `"deny": deny,`, `"deny": set(),`, 1))
	for name, c := range map[string]struct {
		tenant  string
		value   json.RawMessage
		pointer string
	}{
		"another tenant":     {"default", good(func(*catalog.PolicyShadow) {}), "key"},
		"over":               {"system", good(func(p *catalog.PolicyShadow) { p.Since = p.Since.Add(-router.ShadowTerm) }), "value/since"},
		"of tomorrow":        {"system", good(func(p *catalog.PolicyShadow) { p.Since = p.Since.Add(time.Hour) }), "value/since"},
		"no time":            {"system", json.RawMessage(`{"since":"2026-99-20T10:00:00Z","digest":"` + intents.Digest(nil) + `","bundle":"eA=="}`), "value/since"},
		"another digest":     {"system", good(func(p *catalog.PolicyShadow) { p.Digest = intents.Digest(nil) }), "value/bundle"},
		"no bundle":          {"system", good(func(p *catalog.PolicyShadow) { p.Bundle = "eA==" }), "value/bundle"},
		"broken":             {"system", s.value(broken), "value/bundle"},
		"without self-proof": {"system", s.value(allowsAll), "value/bundle"},
	} {
		if a := s.Want(s.put(c.tenant, c.value), intents.MalformedArgs); a.Pointer != "/intent/args/data/"+c.pointer || a.Reason == "" {
			t.Errorf("%s: %q at %s", name, a.Reason, a.Pointer)
		}
	}
	if r, err := s.Router.Shadow(t.Context()); r != nil || err != nil {
		t.Errorf("%+v, %v", r, err)
	}
}

// misbehave is what the built-in writ_test.misbehave does in the shadow policies of tests.
var misbehave func()

func init() {
	b := &ast.Builtin{Name: "writ_test.misbehave", Decl: types.NewFunction(nil, types.B)}
	ast.RegisterBuiltin(b)
	topdown.RegisterBuiltinFunc(b.Name, func(_ topdown.BuiltinContext, _ []*ast.Term, iter func(*ast.Term) error) error {
		misbehave()
		return iter(ast.BooleanTerm(true))
	})
}

// misbehaving is a policy with this condition for searches.
func misbehaving(condition string) policies.Source {
	tree := policies.Embedded()
	noSearch(tree)
	tree["ext/none.rego"] = []byte(strings.Replace(string(tree["ext/none.rego"]), "!= \"self-proof\"\n", "!= \"self-proof\"\n\t"+condition+"\n", 1))
	return tree
}

// TestShadowMisbehaves: a shadow policy that panics, or never ends, changes no decision and delays
// none; what it has no time for is counted, and in the end it is no longer tried.
func TestShadowMisbehaves(t *testing.T) {
	t.Run("panics", func(t *testing.T) {
		misbehave = func() { panic("shadow") }
		s := withShadows(routertest.New(t, routertest.Options{}))
		s.try(misbehaving("writ_test.misbehave()"))
		for range 10 {
			s.find("q")
		}
		if r := s.until(func(r *router.Shadow) bool { return r.Ended != "" }); r.Ended != "it failed or took too long 10 times in a row" || r.Total().Failed != 10 || r.Total().Differ != 0 {
			t.Errorf("%+v", r)
		}
		s.find("q")
	})
	t.Run("blocks", func(t *testing.T) {
		begins, ends := make(chan struct{}, 1000), make(chan struct{})
		misbehave = func() { begins <- struct{}{}; <-ends }
		s := withShadows(routertest.New(t, routertest.Options{}))
		s.try(misbehaving("writ_test.misbehave()"))
		s.find("q")
		<-begins
		before := s.Journal.Next()
		const sent = 300
		for range sent { // it has not come back from the first
			s.find("q")
		}
		if n := s.Journal.Next() - before; n != 2*sent {
			t.Errorf("%d records", n)
		}
		if r, _ := s.Router.Shadow(t.Context()); r.Dropped == 0 || r.Total().Differ != 0 {
			t.Errorf("while it blocks: %+v", r)
		}
		close(ends)
		s.until(func(r *router.Shadow) bool { c := r.Total(); return c.Decided+c.Failed+r.Dropped >= sent+1 })
	})
	t.Run("loops", func(t *testing.T) {
		s := withShadows(routertest.New(t, routertest.Options{}))
		s.try(misbehaving("count([1 | some i in numbers.range(1, 100000); some j in numbers.range(1, 100000); i * j == -1]) > 0"))
		s.find("q")
		s.until(func(r *router.Shadow) bool { return r.Total().Failed == 1 })
	})
}
