package cli

import (
	"strings"
	"testing"

	"aob.dev/writ/audit"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/demo"
	"aob.dev/writ/internal/eval"
	"aob.dev/writ/internal/upkeep"
	"aob.dev/writ/policies"
	"aob.dev/writ/state"
)

// TestTexts: every text can be filled in with what it is about.
func TestTexts(t *testing.T) {
	plain := func(s string) string { return s }
	data := map[string]any{
		"alerts.table": alertsView{}, "backtest.table": audit.Backtest{Groups: []audit.FlipGroup{{Samples: []string{"x"}}}},
		"demo.table": struct {
			demo.Result
			Bold, Dim, Green func(string) string
		}{demo.Result{Large: &demo.Large{}}, plain, plain, plain},
		"evaluated.table": struct {
			Rates   []eval.Rate
			Missing []string
		}{[]eval.Rate{{Min: 1}}, []string{"a"}},
		"explained":      audit.Explained{},
		"findings.table": []upkeep.Finding{{Do: "x"}}, "health": audit.Health{OK: true, Pending: 1, Behind: 1, SetAside: []int64{1}},
		"keys.table": keyList{Keys: []keyRow{{Tenant: "t"}}}, "storage.table": upkeep.StorageStatus{Indices: []upkeep.IndexSize{{}}},
		"agents.table": []agentRow{{}}, "cached.table": catalog.CacheStatsResult{Answers: []catalog.CachedAnswer{{}}},
		"changes":         registryChanges{Added: []changedAgent{{}}, Removed: []changedAgent{{}}, Changed: []changedAgent{{}}, Files: []string{"x"}},
		"changes.rights":  changedAgent{Gained: []string{"x"}, Lost: []string{"x"}},
		"documents.table": catalog.KBListResult{Documents: []catalog.KBDocument{{}}},
		"hits.table":      catalog.KBSearchResult{Hits: []catalog.KBHit{{}}}, "plans.table": catalog.PlanListResult{Plans: []catalog.PlanView{{}}},
		"tenants": state.TenantRows{}, "roles": state.TenantRows{Roles: []catalog.RoleData{{}}}, "users": state.TenantRows{Users: []catalog.User{{Disabled: true}}},
		"apikeys": state.TenantRows{APIKeys: []catalog.APIKey{{Tools: []string{"x"}}}}, "skills": listed{Told: []listedSkill{{Pin: intents.Pin{CacheSeconds: 1}, Approved: true}, {Claims: "pure"}}},
		"policy.table":    policies.Report{Rules: []policies.RuleInfo{{}}, Reads: []string{"x"}},
		"workflows.table": workflowPage{Workflows: []workflowRow{{}}, Runs: []catalog.PlanView{{Run: &catalog.RunView{}}}},
		"plan":            catalog.PlanView{Steps: []catalog.StepView{{FailureReason: "x"}}, Facts: []catalog.OrderFact{{}}, Usage: []catalog.Usage{{}}, Response: "x"},
	}
	for _, of := range printed.Templates() {
		about, known := data[of.Name()]
		if of.Name() == "texts" {
			continue
		}
		if !known {
			t.Errorf("%s: name here what it is about", of.Name())
			continue
		}
		if text := render(of.Name(), about); text == "" || strings.Contains(text, "texts:") || strings.Contains(text, "template:") {
			t.Errorf("%s: %s", of.Name(), text)
		}
	}
}
