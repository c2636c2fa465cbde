package monitor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"aob.dev/writ/internal/clock"
	"aob.dev/writ/storage"
)

// Severities of alerts.
const (
	Page   = "page"   // somebody is woken
	Ticket = "ticket" // somebody looks today
)

// Rule is the condition of an alert.
type Rule struct {
	Name     string
	Severity string
	Says     string // what is wrong
	Do       string // with the command to type
	Window   time.Duration
	// Prometheus is the same condition over the figures that a process publishes.
	Prometheus string
	// Firing reports whether the figures are an alert, and what was observed.
	Firing func(f Figures) (seen string, firing bool)
}

const hour = time.Hour

// Rules are all rules except those of conditions, which a process detects by itself.
var Rules = []Rule{
	{
		Name: "PlanSuccessLow", Severity: Page, Window: hour, Prometheus: `writ_monitor{figure="plan_success"} < 0.8`,
		Says: "fewer than 80 % of the plans of an hour were completed without a new plan",
		Do:   "look which steps fail: writ plan list --status failed, then writ plan show PLAN",
		Firing: func(f Figures) (string, bool) {
			rate, known := part(f.AtOnce, f.Plans)
			return fmt.Sprintf("%d of %d plans", f.AtOnce, f.Plans), known && rate < 0.8
		},
	},
	{
		Name: "ReplansExhausted", Severity: Ticket, Window: hour, Prometheus: `writ_monitor{figure="replan_exhaustion"} > 0.05`,
		Says: "more than 5 % of the plans of an hour used up their replans",
		Do:   "look why their steps fail: writ plan list --status failed, then writ plan show PLAN",
		Firing: func(f Figures) (string, bool) {
			rate, _ := part(f.Exhausted, f.Plans)
			return fmt.Sprintf("%d of %d plans", f.Exhausted, f.Plans), rate > 0.05
		},
	},
	{
		Name: "ContractViolation", Severity: Ticket, Window: hour, Prometheus: `writ_monitor{figure="contract_violations"} > 0`,
		Says: "a task wrote a result that is not what its step promised",
		Do:   "find the step: writ audit search --type write_memory --code CONTRACT_VIOLATION",
		Firing: func(f Figures) (string, bool) {
			return fmt.Sprintf("%d of %d writes", f.Violations, f.Writes), f.Violations > 0
		},
	},
	{
		Name: "ScriptTimeouts", Severity: Ticket, Window: hour, Prometheus: `writ_monitor{figure="script_timeouts"} > 0.05`,
		Says: "more than 5 % of the scripts of an hour ran out of time",
		Do:   "find them: writ audit search --type exec_python, and look at the load of the machine",
		Firing: func(f Figures) (string, bool) {
			rate, _ := part(f.Timeouts, f.Scripts)
			return fmt.Sprintf("%d of %d scripts", f.Timeouts, f.Scripts), rate > 0.05
		},
	},
	{
		Name: "MemoryLockWait", Severity: Ticket, Window: hour, Prometheus: `writ_monitor{figure="lock_wait_seconds"} > 2`,
		Says:   "a task waited for more than 2 s for the lock of a memory",
		Do:     "find tasks that write the same key side by side: writ audit search --type write_memory",
		Firing: func(f Figures) (string, bool) { return fmt.Sprintf("%d ms", f.LockWaitMS), f.LockWaitMS > 2000 },
	},
	{
		Name: "PrincipalMismatch", Severity: Page, Window: 5 * time.Minute, Prometheus: `increase(ps6_envelope_principal_mismatch_total{consumer="consumer-agent"}[5m]) > 0`,
		Says:   "a skill server answered for another user than the one who asked; the answer was not shown",
		Do:     "find the server: writ audit search --type skill.call, and ask who runs it",
		Firing: func(f Figures) (string, bool) { return fmt.Sprintf("%d answers", f.Mismatches), f.Mismatches > 0 },
	},
	{
		Name: "HoldsLate", Severity: Ticket, Window: hour, Prometheus: `writ_holds{half="second"} > 0`,
		Says:   "intents have waited for people for more than half of their time",
		Do:     "decide them: writ approvals list",
		Firing: func(f Figures) (string, bool) { return fmt.Sprintf("%d intents", f.HoldsLate), f.HoldsLate > 0 },
	},
	{
		Name: "LedgerLags", Severity: Page, Window: hour, Prometheus: `max by (job) (writ_ledger_leaves) < max by (job) (writ_journal_records offset 1m)`,
		Says:   "the ledger has been behind the journal for 60 s",
		Do:     "look why: writ doctor --data DIR",
		Firing: func(f Figures) (string, bool) { return clock.Words(f.LedgerBehind), f.LedgerBehind >= time.Minute },
	},
	{
		Name: "DiskLow", Severity: Page, Window: hour, Prometheus: `writ_degraded{condition="disk"} > 0`,
		Says:   "less disk is free than the floor: no new intent is accepted",
		Do:     "make room: writ admin storage status --data DIR",
		Firing: func(f Figures) (string, bool) { return "below the floor", slices.Contains(f.Conditions, "disk") },
	},
	{
		Name: "WriteAheadLogLong", Severity: Page, Window: hour, Prometheus: fmt.Sprintf(`max(writ_write_ahead_log_bytes) > %d`, storage.LongLog),
		Says: "the write-ahead log of a database grows and cannot be started over",
		Do:   "end what reads the database for long: writ admin storage status --data DIR",
		Firing: func(f Figures) (string, bool) {
			return "more than the bound", slices.Contains(f.Conditions, "write_ahead_log")
		},
	},
	{
		Name: "Degraded", Severity: Page, Window: hour, Prometheus: `max(writ_degraded) > 0`,
		Says:   "something keeps writ from its whole work",
		Do:     "read what and why: writ doctor --data DIR",
		Firing: func(f Figures) (string, bool) { return strings.Join(f.Conditions, ", "), len(f.Conditions) > 0 },
	},
}

// Gauges are the figures that a process publishes for Prometheus's rules.
func (f Figures) Gauges() map[string]float64 {
	out := map[string]float64{"contract_violations": float64(f.Violations), "lock_wait_seconds": float64(f.LockWaitMS) / 1000}
	for name, of := range map[string][2]int64{
		"plan_success": {f.AtOnce, f.Plans}, "replan_exhaustion": {f.Exhausted, f.Plans}, "replans_per_plan": {f.Replans, f.Plans},
		"script_timeouts": {f.Timeouts, f.Scripts}, "large_responses": {f.Large, f.Calls}, "contract_violation_rate": {f.Violations, f.Writes},
	} {
		if rate, known := part(of[0], of[1]); known {
			out[name] = rate
		}
	}
	for _, a := range f.Agents {
		out[a.Agent+"_p95_seconds"] = float64(a.P95MS) / 1000
	}
	return out
}
