package datadir_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/router/routertest"
)

// TestUnmatchedNames: a schedule is of an agent that is there, and the agents of system may name what
// any tenant has.
func TestUnmatchedNames(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	w.Pin("feed", catalog.Pure)
	w.PushAgents(1, map[string]string{"agents/shop.yaml": "name: shop\ndescription: Sells.\ntools: [{server: crm, name: feed}, {server: crm}]\n"})
	put := routertest.Order{By: w.Gateway, Type: "schedule.put", Args: catalog.SchedulePut{ID: "daily", Agent: "shop", Input: "Sell.", Cron: "0 9 * * *"}}
	w.Want(w.Do(put), intents.OK)
	declared := []datadir.SkillVersion{{Name: "crm.feed", Declared: true, Tenants: []string{"default"}}}
	of := func(declared []datadir.SkillVersion) (out []string) {
		for _, tenant := range w.Dir.Tenants() {
			for _, u := range datadir.UnmatchedNames(w.Dir, tenant, declared) {
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
}
