package monitor_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"aob.dev/writ/monitor"
)

//go:generate go test . -run TestGenerated -update

var update = flag.Bool("update", false, "write deploy/prometheus and deploy/grafana")

// alertRules are the rules for Prometheus.
func alertRules() []byte {
	var b strings.Builder
	b.WriteString("# Made by go generate from the rules that writ has built in: monitor/rules.go.\ngroups:\n  - name: writ\n    rules:\n")
	for _, r := range monitor.Rules {
		fmt.Fprintf(&b, "      - alert: %s\n        expr: '%s'\n        labels: {severity: %s}\n        annotations:\n          summary: %q\n          description: %q\n",
			r.Name, r.Prometheus, r.Severity, r.Says, r.Do)
	}
	return []byte(b.String())
}

// alertCases are the series of each rule that cause an alert, and those that do not, as promtool
// writes them: a name, and a value for each minute.
var alertCases = map[string]struct{ fires, silent []string }{
	"PlanSuccessLow":    {[]string{`writ_monitor{figure="plan_success"} 0.79x9`}, []string{`writ_monitor{figure="plan_success"} 0.8x9`}},
	"ReplansExhausted":  {[]string{`writ_monitor{figure="replan_exhaustion"} 0.06x9`}, []string{`writ_monitor{figure="replan_exhaustion"} 0.05x9`}},
	"ContractViolation": {[]string{`writ_monitor{figure="contract_violations"} 1x9`}, []string{`writ_monitor{figure="contract_violations"} 0x9`}},
	"ScriptTimeouts":    {[]string{`writ_monitor{figure="script_timeouts"} 0.06x9`}, []string{`writ_monitor{figure="script_timeouts"} 0.05x9`}},
	"MemoryLockWait":    {[]string{`writ_monitor{figure="lock_wait_seconds"} 2.1x9`}, []string{`writ_monitor{figure="lock_wait_seconds"} 2x9`}},
	// It was counted in the last five minutes, or before.
	"PrincipalMismatch": {[]string{`ps6_envelope_principal_mismatch_total{consumer="consumer-agent"} 0x7 1x1`}, []string{`ps6_envelope_principal_mismatch_total{consumer="consumer-agent"} 0 1x8`}},
	"HoldsLate":         {[]string{`writ_holds{half="second"} 1x9`}, []string{`writ_holds{half="second"} 0x9`, `writ_holds{half="first"} 1x9`}},
	// The second recorder of a cell has no ledger. A record exists for a moment before its leaf
	// does.
	"LedgerLags": {
		[]string{`writ_journal_records{job="writ"} 10x9`, `writ_ledger_leaves{job="writ"} 9x9`},
		[]string{
			`writ_journal_records{job="writ"} 10x8 11`, `writ_ledger_leaves{job="writ"} 10x9`,
			`writ_journal_records{job="cell",instance="a"} 10x9`, `writ_ledger_leaves{job="cell",instance="a"} 10x9`,
			`writ_journal_records{job="cell",instance="b"} 10x9`, `writ_ledger_leaves{job="cell",instance="b"} 0x9`,
		},
	},
	"WriteAheadLogLong": {[]string{`writ_write_ahead_log_bytes{database="documents"} 536870913x9`}, []string{`writ_write_ahead_log_bytes{database="documents"} 536870912x9`}},
	"DiskLow":           {[]string{`writ_degraded{condition="disk"} 1x9`}, []string{`writ_degraded{condition="documents"} 1x9`}},
	"Degraded":          {[]string{`writ_degraded{condition="documents"} 1x9`}, []string{`writ_degraded{condition="documents"} 1x8 stale`}},
}

// alertTests are the tests of the rules for promtool.
func alertTests(t *testing.T) []byte {
	t.Helper()
	var b strings.Builder
	b.WriteString("# Made by go generate from the cases of monitor/generated_test.go.\nrule_files: [alerts.yaml]\ntests:\n")
	for _, r := range monitor.Rules {
		of, known := alertCases[r.Name]
		if !known {
			t.Errorf("%s has no case", r.Name)
		}
		for _, c := range []struct {
			name   string
			series []string
		}{{"fires", of.fires}, {"is silent", of.silent}} {
			fmt.Fprintf(&b, "  - name: %s %s\n    interval: 1m\n    input_series:\n", r.Name, c.name)
			for _, s := range c.series {
				name, values, _ := strings.Cut(s, " ")
				fmt.Fprintf(&b, "      - {series: '%s', values: '%s'}\n", name, values)
			}
			fmt.Fprintf(&b, "    alert_rule_test:\n      - eval_time: 9m\n        alertname: %s\n", r.Name)
			if c.name == "fires" {
				fmt.Fprintf(&b, "        exp_alerts:\n          - exp_labels: {%sseverity: %s}\n            exp_annotations:\n              summary: %q\n              description: %q\n",
					alertLabels(r.Prometheus, c.series[0]), r.Severity, r.Says, r.Do)
			}
		}
	}
	return []byte(b.String())
}

// alertLabels are those that an alert has from its series.
func alertLabels(expr, series string) string {
	if strings.HasPrefix(expr, "max(") {
		return ""
	}
	found := regexp.MustCompile(`(\w+)="(.*?)"`).FindStringSubmatch(series)
	return fmt.Sprintf("%s: %s, ", found[1], found[2])
}

type panel struct{ title, expr, unit string }

// boards are the dashboards, one of each layer.
var boards = []struct {
	file, title string
	panels      []panel
}{
	{"orchestrator", "writ: intents and plans", []panel{
		{"Intents per second, by type", "sum by (type) (rate(writ_intents_decided_total[5m]))", "ops"},
		{"Accepted, by type", `sum by (type) (rate(writ_intents_decided_total{code="OK"}[5m])) / sum by (type) (rate(writ_intents_decided_total[5m]))`, "percentunit"},
		{"Refusals, by code", `sum by (code) (rate(writ_intents_refused_total[5m]))`, "ops"},
		{"Denials, by rule", `topk(10, sum by (policy) (rate(writ_policy_denials_total[1h])))`, "ops"},
		{"Stages, p95", `histogram_quantile(0.95, sum by (le, stage) (rate(writ_stage_seconds_bucket[5m])))`, "s"},
		{"Commit and sync, p95", `histogram_quantile(0.95, sum by (le) (rate(writ_journal_commit_seconds_bucket[5m])))`, "s"},
		{"Intents in execution", "writ_intents_running", "short"},
		{"Intents that wait for people", "writ_holds", "short"},
		{"Behind the journal", "writ_journal_records - writ_ledger_leaves", "short"},
	}},
	{"agents", "writ: agents", []panel{
		{"Asked agents, p95", "histogram_quantile(0.95, sum by (le, agent_id) (rate(agent_dispatch_duration_ms_bucket[5m])))", "ms"},
		{"Overhead of asking, p95", "histogram_quantile(0.95, sum by (le) (rate(agent_dispatch_overhead_seconds_bucket[5m])))", "s"},
		{"Asked agents without an answer", "sum by (agent_id, error_type) (rate(agent_dispatch_errors_total[5m]))", "ops"},
		{"Turns, by figure", "sum by (figure, value) (rate(agent_turn_figures_total[5m]))", "ops"},
		{"Tokens", "sum by (kind) (rate(writ_model_tokens_total[5m]))", "short"},
		{"Planners and tasks, p95", `writ_monitor{figure=~"subagent_._p95_seconds"}`, "s"},
	}},
	{"skills", "writ: skills", []panel{
		{"Events of executors", "sum by (event) (rate(writ_executor_events_total[5m]))", "ops"},
		{"Breakers", "circuit_breaker_state", "short"},
		{"Large answers", `writ_monitor{figure="large_responses"}`, "percentunit"},
		{"Answers for another user", "increase(ps6_envelope_principal_mismatch_total[5m])", "short"},
		{"Scripts", "writ_scripts", "short"},
		{"Scripts out of time", `writ_monitor{figure="script_timeouts"}`, "percentunit"},
	}},
	{"plans", "writ: health of plans", []panel{
		{"Complete without a new plan", `writ_monitor{figure="plan_success"}`, "percentunit"},
		{"Replans per plan", `writ_monitor{figure="replans_per_plan"}`, "short"},
		{"Replans used up", `writ_monitor{figure="replan_exhaustion"}`, "percentunit"},
		{"Results that break their contract", `writ_monitor{figure="contract_violation_rate"}`, "percentunit"},
		{"Longest wait for a lock", `writ_monitor{figure="lock_wait_seconds"}`, "s"},
		{"Conditions", "writ_degraded", "short"},
	}},
}

// dashboard is a dashboard for Grafana.
func dashboard(t *testing.T, title string, panels []panel) []byte {
	t.Helper()
	var all []map[string]any
	for i, p := range panels {
		source := map[string]string{"type": "prometheus", "uid": "${datasource}"}
		all = append(all, map[string]any{
			"id": i + 1, "type": "timeseries", "title": p.title, "datasource": source,
			"gridPos":     map[string]int{"h": 8, "w": 8, "x": i % 3 * 8, "y": i / 3 * 8},
			"fieldConfig": map[string]any{"defaults": map[string]any{"unit": p.unit}, "overrides": []any{}},
			"targets":     []any{map[string]any{"refId": "A", "expr": p.expr, "datasource": source}},
		})
	}
	raw, err := json.MarshalIndent(map[string]any{
		"title": title, "uid": strings.NewReplacer(": ", "-", " ", "-").Replace(title), "schemaVersion": 39, "tags": []string{"writ"}, "refresh": "1m",
		"time":       map[string]string{"from": "now-6h", "to": "now"},
		"templating": map[string]any{"list": []any{map[string]any{"name": "datasource", "type": "datasource", "query": "prometheus"}}},
		"panels":     all,
	}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return append(raw, '\n')
}

// TestGenerated: the files of deploy are made from the built-in rules. Each metric that they name
// is in docs/operations.md, which names the existing ones.
func TestGenerated(t *testing.T) {
	deploy := filepath.Join("..", "deploy")
	files := map[string][]byte{filepath.Join(deploy, "prometheus", "alerts.yaml"): alertRules(), filepath.Join(deploy, "prometheus", "alerts_test.yaml"): alertTests(t)}
	exprs := []string{}
	for _, b := range boards {
		files[filepath.Join(deploy, "grafana", b.file+".json")] = dashboard(t, b.title, b.panels)
		for _, p := range b.panels {
			exprs = append(exprs, p.expr)
		}
	}
	for _, r := range monitor.Rules {
		exprs = append(exprs, r.Prometheus)
	}
	for name, want := range files {
		if *update {
			if err := os.WriteFile(name, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(name); err != nil || string(got) != string(want) {
			t.Errorf("%s is not what the code says: go generate ./monitor (%v)", name, err)
		}
	}
	var parsed struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string } `yaml:"rules"`
		} `yaml:"groups"`
	}
	if err := yaml.Unmarshal(alertRules(), &parsed); err != nil || len(parsed.Groups) != 1 || len(parsed.Groups[0].Rules) != len(monitor.Rules) {
		t.Fatalf("%+v, %v", parsed, err)
	}
	for i, r := range parsed.Groups[0].Rules {
		if r.Alert != monitor.Rules[i].Name || r.Expr != monitor.Rules[i].Prometheus {
			t.Errorf("%+v", r)
		}
	}
	page, err := os.ReadFile(filepath.Join("..", "docs", "operations.md"))
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`\b(writ|agent|circuit|ps6)_[a-z0-9_]+\b`)
	found := 0
	for _, x := range exprs {
		for _, name := range names.FindAllString(regexp.MustCompile(`\{[^}]*\}|by \([^)]*\)`).ReplaceAllString(x, ""), -1) {
			found++
			if base := strings.TrimSuffix(name, "_bucket"); !strings.Contains(string(page), "`"+base+"`") {
				t.Errorf("docs/operations.md names no metric %s of %s", base, x)
			}
		}
	}
	if found < 30 {
		t.Errorf("only %d metrics found", found)
	}
	for _, r := range monitor.Rules {
		if !strings.Contains(string(page), "* `"+r.Name+"` (") {
			t.Errorf("docs/operations.md does not explain the alert %s", r.Name)
		}
	}
}
