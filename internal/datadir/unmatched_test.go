package datadir_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/executors/skills/approval"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/testing/routertest"
)

// TestUnmatchedNames: a schedule is of an agent that is there, and the agents of system may name what
// any tenant has.
func TestUnmatchedNames(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	w.Pin("feed", catalog.Pure)
	w.PushAgents(1, map[string]string{"agents/shop.yaml": "name: shop\ndescription: Sells.\ntools: [{server: crm, name: feed}, {server: crm}]\n"})
	put := routertest.Intent{By: w.Gateway, Type: "schedule.put", Args: catalog.SchedulePut{ID: "daily", Agent: "shop", Input: "Sell.", Cron: "0 9 * * *"}}
	w.Want(w.Do(put), intents.OK)
	declared := []approval.Version{{Name: "crm.feed", Declared: true, Tenants: []string{"default"}}, {Name: "feed", Declared: true}}
	of := func(declared []approval.Version, down ...string) (out []string) {
		for _, tenant := range w.Dir.Tenants() {
			for _, u := range datadir.UnmatchedNames(w.Dir, tenant, declared, down...) {
				out = append(out, u.String())
			}
		}
		return out
	}
	w.Want(w.Admin("registry.push", w.RegistryOf("system", 1, map[string]string{"agents/inn.yaml": "name: inn\ndescription: Sleeps.\ntools: [{server: crm, name: feed}]\n"})), intents.OK)
	if got := of(declared); got != nil {
		t.Errorf("all is there: %q", got)
	}
	w.PushAgents(2, map[string]string{"agents/mall.yaml": "name: mall\ndescription: Sells.\ntools: [{server: crm, name: feed}]\n"})
	want := []string{
		`agent mall of tenant default: "crm.feed" matches no skill`, `schedule daily of user ana of tenant default: "shop" matches no agent`,
		`agent inn of tenant system: "crm.feed" matches no skill`,
	}
	if d := cmp.Diff(want, of(nil)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if d := cmp.Diff(want, of(nil, "memory")); d != "" {
		t.Errorf("while another server is down: -want +got:\n%s", d)
	}
	if d := cmp.Diff(want[1:2], of(nil, "memory", "crm")); d != "" {
		t.Errorf("while the server is down: -want +got:\n%s", d)
	}
	for name, judged := range map[string]bool{"memory.*": true, "memory.x": true, "c*": false, "crm.*": false, "*.feed": false, "*": false, "feed": false, "crmx.feed": true, "cr.feed": true} {
		w.Want(w.Admin("admin.put", catalog.AdminPut{Tenant: "default", Data: &catalog.Data{Key: "skills_allow", Value: []byte(`["` + name + `x"]`)}}), intents.OK)
		if got := slices.ContainsFunc(of(nil, "crm"), func(s string) bool { return strings.HasPrefix(s, "data skills_allow") }); got != judged {
			t.Errorf("%s, while crm is down: judged %v", name, got)
		}
	}
}

// TestApprovedSkillsUnmatched: a skill may be approved before its server is there; that no server
// declares it is told.
func TestApprovedSkillsUnmatched(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	w.Pin("crm.feed", catalog.Pure)
	w.Pin("crm.fead", catalog.Pure)
	for name, c := range map[string]struct {
		declared []approval.Version
		down     []string
		want     []string
	}{
		"not known what is declared": {},
		"one is declared":            {declared: []approval.Version{{Name: "crm.feed", Declared: true}, {Name: "crm.fead"}}, want: []string{"crm.fead"}},
		"of another tenant":          {declared: []approval.Version{{Name: "crm.feed", Declared: true, Tenants: []string{"other"}}, {Name: "crm.fead", Declared: true}}, want: []string{"crm.feed"}},
		"the server is down":         {declared: []approval.Version{{Name: "shop.sell", Declared: true}}, down: []string{"crm"}},
	} {
		var got []string
		for _, u := range datadir.UnmatchedNames(w.Dir, "default", c.declared, c.down...) {
			got = append(got, u.Name)
			if u.String() != `approval of `+u.Name+` of tenant default: "`+u.Name+`" matches no skill` {
				t.Error(u)
			}
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s: -want +got:\n%s", name, d)
		}
	}
}
