package state_test

import (
	"encoding/json"
	"testing"

	"aob.dev/writ/state"
	"aob.dev/writ/state/agents"
)

// TestApprovals: the calls that the file of an agent holds.
func TestApprovals(t *testing.T) {
	lead := agents.Approval{Roles: []string{"lead"}}
	some := agents.Approval{Roles: []string{"lead"}, When: json.RawMessage(`{"properties":{"n":{"minimum":10}},"required":["n"]}`)}
	task := func(tool string, a agents.Approval) state.Task {
		return state.Task{Agent: "shop", Holds: []agents.Hold{{Tool: tool, Approval: a}}}
	}
	for name, c := range map[string]struct {
		task      state.Task
		typ, args string
		held      bool
	}{
		"its skill":              {task("crm.close", lead), "skill.call", `{"skill":"crm.close","input":{}}`, true},
		"another skill":          {task("crm.close", lead), "skill.call", `{"skill":"crm.list"}`, false},
		"loading it":             {task("crm.close", lead), "skill.load", `{"skill":"crm.close"}`, false},
		"a whole server":         {task("crm.*", lead), "skill.call", `{"skill":"crm.list"}`, true},
		"another server":         {task("crm.*", lead), "skill.call", `{"skill":"crm2.list"}`, false},
		"every server":           {task("*.*", lead), "skill.call", `{"skill":"mail.send"}`, true},
		"a tool of writ":         {task("exec_python", lead), "exec_python", `{"script":"1"}`, true},
		"an intent of a tool":    {task("search", lead), "memory.query", `{}`, true},
		"its end":                {task("*.*", lead), "step.finish", `{}`, false},
		"arguments that need it": {task("crm.close", some), "skill.call", `{"skill":"crm.close","input":{"n":10}}`, true},
		"others":                 {task("crm.close", some), "skill.call", `{"skill":"crm.close","input":{"n":9}}`, false},
		"no arguments":           {task("crm.close", some), "skill.call", `{"skill":"crm.close"}`, false},
		"arguments not seen":     {task("crm.close", some), "skill.call", `{"skill":"crm.close","from":"file_1"}`, true},
		"no agent of a file":     {state.Task{}, "skill.call", `{"skill":"crm.close"}`, false},
	} {
		rules := c.task.Approvals(c.typ, json.RawMessage(c.args))
		if (len(rules) == 1) != c.held || c.held && (rules[0].ID != "agent.shop.approval" || rules[0].Roles[0] != "lead") {
			t.Errorf("%s: %+v", name, rules)
		}
	}
}
