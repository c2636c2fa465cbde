package cli

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"text/template"
	"time"

	"aob.dev/writ/audit"
	"aob.dev/writ/bus"
	"aob.dev/writ/cell"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/demo"
	"aob.dev/writ/internal/eval"
	"aob.dev/writ/policies"
	"aob.dev/writ/router"
	"aob.dev/writ/state"
	"aob.dev/writ/state/agents"
	"aob.dev/writ/upkeep"
)

// TestTexts: every text can be filled in with what it is about.
func TestTexts(t *testing.T) {
	plain := func(s string) string { return s }
	data := map[string]any{
		"alerts.table": alertsView{}, "backtest.table": audit.Backtest{Groups: []audit.FlipGroup{{Samples: []string{"x"}}}},
		"demo.table": struct {
			demo.Result
			Bold, Dim, Green func(string) string `json:"-"`
		}{demo.Result{Answer: []demo.Row{{}}, Large: &demo.Large{}, Intents: []demo.Intent{{PolicyIDs: []string{"x"}}}}, plain, plain, plain},
		"evaluated.table": struct {
			Rates   []eval.Rate
			Missing []string
		}{[]eval.Rate{{Min: 1}}, []string{"a"}},
		"erased": erasedUser{Connections: []catalog.EndedAccess{{Revoked: true}, {}}, NotRevoked: "x", UserEraseResult: catalog.UserEraseResult{Retained: []catalog.RetainedIntents{{Why: catalog.RetainedHeld}}, Remaining: []string{"x"}}}, "explained": audit.DecisionExplanation{},
		"found.table": struct {
			catalog.PlanUsageResult
			catalog.MessageListResult
		}{catalog.PlanUsageResult{Usage: []catalog.UsageRow{{}, {Cost: new(float64)}}}, catalog.MessageListResult{Messages: []catalog.Message{{}}}},
		"findings.table": []upkeep.Finding{{Do: "x"}}, "health": audit.Health{OK: true, Pending: 1, Behind: 1, SetAside: []int64{1}},
		"keys.table": keyList{Keys: []keyRow{{Subject: "s", Tenant: "t", NotAfter: "x"}}}, "storage.table": upkeep.StorageStatus{Indices: []upkeep.IndexSize{{}}},
		"agent.table":  shownAgent{Scope: agents.Scope{Skills: []string{"a.b"}, Servers: []string{"c"}, Holds: []agents.Hold{{}, {}}, AskAny: true, Routing: &agents.RoutingRule{Clarify: true}, Remote: true}},
		"agents.table": []agentRow{{}}, "cached.table": catalog.CacheStatsResult{Answers: []catalog.CachedAnswer{{}}},
		"approvals": bus.ApprovalsReply{Approvals: []bus.PendingApproval{{}}}, "cell": cell.Status{}, "copied": []upkeep.CopyReport{{}},
		"externals": []datadir.External{{Types: []string{"x"}}, {Revoked: new(time.Time)}}, "reindexed": []upkeep.ReindexReport{{}},
		"documents.table": catalog.KBListResult{Documents: []catalog.KBDocument{{}}},
		"hits.table":      catalog.KBSearchResult{Hits: []catalog.KBHit{{}}}, "plans.table": catalog.PlanListResult{Plans: []catalog.PlanView{{}}},
		"tenants": state.TenantRows{}, "roles": state.TenantRows{Roles: []catalog.RoleData{{}}}, "users": state.TenantRows{Users: []catalog.User{{Disabled: true}}},
		"apikeys": state.TenantRows{APIKeys: []catalog.APIKey{{Tools: []string{"x"}, Rename: map[string]string{"x": "y"}, Group: map[string]string{"*": "z"}}}}, "skills": tenantListing{Notes: []listedSkill{{Pin: intents.Pin{CacheSeconds: 1}, Approved: true}, {Claims: "pure"}}},
		"tested": map[string][]policies.Case{"a": {{}, {Passed: true}}}, "decided": catalog.ApproveResult{State: "released", Code: "OK", Missing: []string{"x"}}, "judged": eval.Result{Wrong: []string{"x"}},
		"connect.link":    connecting{},
		"probed":          probedAgent{Points: []upkeep.AgentPoint{{Found: "x", Do: "y"}}},
		"shadow.table":    &router.Shadow{Groups: []router.ShadowGroup{{}}, Differences: []router.ShadowDifference{{}}},
		"policy.table":    policies.Report{Rules: []policies.RuleInfo{{}}, Reads: []string{"x"}},
		"workflows.table": workflowPage{Workflows: []workflowRow{{}}, Runs: []catalog.PlanView{{Run: &catalog.RunView{}}}},
		"run.table":       catalog.PlanView{Run: &catalog.RunView{ReplayOf: "x", Edges: []catalog.RunEdge{{To: "a", Condition: "x", Holds: new(bool)}}}, Steps: []catalog.StepView{{PlanStep: catalog.PlanStep{ID: "a"}, FailureReason: "x", RetryAt: new(time.Time)}}, Response: "x", Failure: &catalog.Failure{}},
		"plan":            catalog.PlanView{Steps: []catalog.StepView{{FailureReason: "x"}}, IntentHistory: []catalog.PastIntent{{}}, Usage: []catalog.Usage{{}}, Response: "x"},
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
		wordsOfMembers(t, of, about)
		if text := render(of.Name(), about); text == "" || strings.Contains(text, "texts:") || strings.Contains(text, "template:") {
			t.Errorf("%s: %s", of.Name(), text)
		}
	}
}

// label is a word that names the value of a cell.
var label = regexp.MustCompile(`(?:^|\t)(\w+) {{\.(?:\w+\.)*(\w+)}}(?:\t|$)`)

// wordsOfMembers: a table calls a thing by the name of its JSON member.
func wordsOfMembers(t *testing.T, of *template.Template, about any) {
	t.Helper()
	if !strings.HasSuffix(of.Name(), ".table") {
		return
	}
	raw, err := json.Marshal(about)
	if err != nil {
		t.Fatalf("%s: %v", of.Name(), err)
	}
	for line := range strings.Lines(of.Root.String()) {
		for _, m := range label.FindAllStringSubmatch(strings.TrimRight(line, "\n"), -1) {
			if word := m[1]; !strings.EqualFold(m[2], word) {
				t.Errorf("%s: %s is shown as %s", of.Name(), m[2], word)
			}
		}
		if strings.Contains(line, "{{") || !strings.Contains(line, "\t") {
			continue
		}
		for head := range strings.SplitSeq(strings.TrimSpace(line), "\t") {
			if member := strings.ReplaceAll(strings.ToLower(head), " ", "_"); !strings.Contains(string(raw), `"`+member+`"`) {
				t.Errorf("%s: no member is called %s", of.Name(), head)
			}
		}
	}
}
