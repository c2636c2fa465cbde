package router_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// An approval with a key, or under a grant, that has been revoked since no longer counts; the
// person may approve again.
func TestApprovalUnderRevoked(t *testing.T) {
	for name, revoke := range map[string]func(w *routertest.World, second intents.Signer){
		"key of the gateway": func(w *routertest.World, second intents.Signer) { w.RevokeKey(second) },
		"grant": func(w *routertest.World, _ intents.Signer) { // issued at 10:00:00, used at 10:00:30
			w.Want(w.Admin("grant.revoke", catalog.GrantRevoke{Tenant: "default", Sub: "ben", Before: "2026-11-20T10:00:01Z"}), intents.OK)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := routertest.New(t, routertest.Options{})
			x := heldCall(w, catalog.Once, `{"once":true,"count":2}`)
			second := w.NewKey(intents.RoleGateway)
			w.Want(w.Keys(func(set *intents.KeySet) { set.Keys = append(set.Keys, second.VerificationKey().ToJWK()) }), intents.OK)
			o := x.word("ben", catalog.DecisionApprove)
			o.IssuedBy = &second
			o.Grant = func(g *intents.Grant) {
				g.Act.Client, g.IssuedAt = "apikey:ben", routertest.Began.Unix()
			}
			w.Clock.Move(30 * time.Second)
			w.Want(w.Do(o), intents.OK)
			revoke(w, second)
			w.Clock.Move(time.Second)
			if got := x.state(x.says("cleo", catalog.DecisionApprove)); got.State != catalog.ApprovalPending || len(got.Approved) != 1 {
				t.Fatalf("%+v", got)
			}
			if got := x.state(x.says("ben", catalog.DecisionApprove)); got.State != catalog.ApprovalReleased || len(got.Approved) != 2 {
				t.Errorf("%+v", got)
			}
			w.Want(x.outcome(), intents.OK)
		})
	}
}

// A held intent that ends its plan ends the plan's other held intents, and not itself.
func TestReleaseEndsPlan(t *testing.T) {
	w := rules(t, `{"id": "ext.ours", "reason": "We want to know.", "approvers": ["ben"]} if input.intent.type in {"plan.close", "skill.call"}`)
	x := releaseWorld{w, started(w, catalog.Once), nil}
	call := w.Want(x.task.Call("feed", `{}`), intents.ApprovalRequired)
	x.held = w.Want(x.task.Fail(), intents.ApprovalRequired)
	if got := x.state(x.says("ben", catalog.DecisionApprove)); got.State != catalog.ApprovalReleased {
		t.Errorf("%+v", got)
	}
	w.Want(x.outcome(), intents.OK)
	other, err := w.Router.Await(t.Context(), *call.Position)
	w.Must(err)
	w.Want(other, intents.Cancelled)
	if s, _ := x.task.Status(); s != catalog.PlanFailed {
		t.Errorf("plan %s", s)
	}
	w.Restart()
	// Its outcome names it, and not the release right before.
	ends := 0
	for _, rec := range w.Records() {
		if rec.Kind == storage.KindOutcome && state.EntryOf(rec).Target == *x.held.Position {
			ends++
		}
	}
	if ends != 1 {
		t.Errorf("%d outcomes of the released intent", ends)
	}
}

// The catalog may have grown between hold and release: the release names the one that it was judged
// under. If the type has changed by then it is refused.
func TestReleaseUnderAnotherCatalog(t *testing.T) {
	types := func(effect string, names ...string) *catalog.Catalog {
		dir := t.TempDir()
		for _, name := range names {
			text := fmt.Sprintf(`{"type":"x.acme.%s","title":"Run","capability":"x.acme:run","signed_by":["gateway"],"executor":"x-acme","effect":"%s","ttl_sec":60,"run_sec":10,"args_schema":{"type":"object"},"result_schema":{"type":"object"}}`, name, effect)
			if err := os.WriteFile(filepath.Join(dir, "x.acme."+name+".json"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		c, err := catalog.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	for name, c := range map[string]struct {
		catalog *catalog.Catalog
		want    intents.Code
	}{
		"more":           {types("pure", "run", "walk"), intents.OK},
		"another effect": {types("once", "run"), intents.PolicyDenied},
	} {
		t.Run(name, func(t *testing.T) {
			w := rules(t, `{"id": "ext.ours", "reason": "We want to know.", "approvers": ["ben"]} if input.intent.type == "x.acme.run"`)
			w.Catalog = types("pure", "run")
			w.Want(w.Admin("admin.put", catalog.AdminPut{Tenant: "default", Role: &catalog.RoleData{Role: "user", Capabilities: []string{"x.acme:run"}}}), intents.OK)
			x := releaseWorld{w.Restart(), nil, nil}
			x.held = x.Want(x.Do(routertest.Intent{By: x.Gateway, Type: "x.acme.run", Args: struct{}{}}), intents.ApprovalRequired)
			x.Catalog = c.catalog
			x.World = x.Restart()
			x.Bus.On("x.acme.run", routertest.Always(routertest.Done(struct{}{})))
			x.state(x.says("ben", catalog.DecisionApprove))
			x.Want(x.outcome(), c.want)
			for _, rec := range x.Records() {
				if rec.Kind != storage.KindRelease {
					continue
				}
				if rel, err := state.ReleaseOf(rec); err != nil || rel.Decision.Catalog != c.catalog.Digest() {
					t.Errorf("released under catalog %s, %v", rel.Decision.Catalog, err)
				}
			}
		})
	}
}

// A rule may mask a whole intent; an invalid pointer also masks all.
func TestMaskOfAll(t *testing.T) {
	for _, pointer := range []string{"", "input/card"} {
		w := rules(t, `{"id": "ext.ours", "reason": "We want to know.", "approvers": ["ben"], "mask": ["`+pointer+`"]} if input.intent.type == "skill.call"`)
		w.Want(started(w, catalog.Once).Call("feed", `{"card":"4111"}`), intents.ApprovalRequired)
		page, err := w.Router.Inbox(t.Context(), intents.Grant{Subject: "ben", Tenant: "default", Roles: []string{"approver"}}, bus.ApprovalsRequest{})
		w.Must(err)
		if len(page.Approvals) != 1 || strings.Contains(string(page.Approvals[0].Args), "4111") || !json.Valid(page.Approvals[0].Args) {
			t.Errorf("%q: %+v", pointer, page)
		}
	}
}
