package agentic

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state/agents"
)

const seller = `
name: seller
description: Sells.
instructions: Sell dear.
temperature: 0.5
stop: [END]
model: small
tools:
  - {server: crm, name: list, description: Look before you sell.}
  - {server: crm, name: gone}
  - name: search
sub_agents: [general]
`

// selling has the core return the plan of an agent with the given definition.
func selling(c *core, text string) {
	c.t.Helper()
	a, err := agents.Parse([]byte(text))
	if err != nil {
		c.t.Fatal(err)
	}
	answerTransitions(c, catalog.PlanView{
		PlanID: "plan_1", Status: catalog.PlanExecuting, Task: "How many outlets are there?", Agent: a.Name, PlanDigest: intents.Digest(nil),
		Steps: []catalog.StepView{{Status: catalog.StepPending, PlanStep: catalog.PlanStep{
			Step: 1, Task: a.Name, Skills: []string{"crm.gone", "crm.list"}, ReturnSpec: catalog.ReturnSpec{Shape: "string"},
		}}},
	})
	c.on("soul.get", refuse(intents.NotFound, "no soul"))
	c.on("session.get", done(catalog.Session{Status: catalog.SessionActive}))
	c.on("session.append", done(catalog.Session{}))
	c.on("agent.get", done(catalog.AgentGetResult{Agent: a.Name, Text: text, TimeLimitSec: a.Limits.Seconds}))
	c.on("skill.load", func(p placed) *intents.Answer {
		if strings.Contains(string(p.Args), "gone") {
			return refuse(intents.PolicyDenied, "not approved")(p)
		}
		return done(catalog.Manifest{Name: "crm.list", Description: "Lists.", InputSchema: json.RawMessage(`{"type":"object"}`), Effect: catalog.Pure})(p)
	})
	c.on("skill.call", done(catalog.SkillCallResult{Output: json.RawMessage(`[1,2]`)}))
}

func toolNames(r model.Request) (names []string) {
	for _, t := range r.Tools {
		names = append(names, t.Name)
	}
	return names
}

// finished returns the step.finish of the agent's task.
func finished(c *core) (f catalog.StepFinish) {
	c.t.Helper()
	all := c.ofType("step.finish")
	if len(all) != 1 || json.Unmarshal(all[0].Args, &f) != nil {
		c.t.Fatalf("%v", types(c.allPlaced()))
	}
	return f
}

// TestAgentTurn: an agent gets its own prompt, settings and those of its tools that exist; its
// last text is its reply and the answer; no planner or composer runs.
func TestAgentTurn(t *testing.T) {
	c := newCore(t)
	selling(c, seller)
	other := says(map[string][]any{"seller": {call("crm_list", struct{}{}), "There are two."}})
	cfgs := c.config("task", says(nil))
	cfgs.Models = map[string]model.Model{"small": other}
	c.serve("task", ignoring(NewTasks(cfgs).Serve))
	c.serve("manager", ignoring(NewManager(c.config("manager", says(nil))).Serve))
	before := time.Now()
	dispatchTurn(c)
	frames := shown(c)
	if a := dataOf[bus.AnswerData](t, frames[len(frames)-2]); a.Response != "There are two." {
		t.Errorf("answer %+v", a)
	}
	if f := finished(c); f.Reply != "There are two." || f.Status != taskDone || f.MemoryKey != "" {
		t.Errorf("step.finish %+v", f)
	}
	if got := closed(c); got.Status != "complete" || got.Response != "There are two." {
		t.Errorf("plan.close %+v", got)
	}
	asked := other.requests("seller")
	if len(asked) != 2 {
		t.Fatalf("%d requests", len(asked))
	}
	first := asked[0]
	if !strings.HasPrefix(first.System, "Sell dear.\n") || !strings.Contains(first.System, "**list**: Look before you sell.") || *first.Temperature != 0.5 || !slices.Equal(first.Stop, []string{"END"}) {
		t.Errorf("request %+v", first)
	}
	if first.Tools[0].Description != "Lists.\nLook before you sell." {
		t.Errorf("the tool is described as %q", first.Tools[0].Description)
	}
	if first.Messages[1].Text != "How many outlets are there?" || first.Choice != model.ChoiceAuto || !slices.Equal(toolNames(first), []string{"crm_list", "search"}) {
		t.Errorf("request %+v, tools %v", first, toolNames(first))
	}
	var s catalog.Step
	if err := json.Unmarshal(c.ofType("step")[0].Args, &s); err != nil {
		t.Fatal(err)
	}
	if until, err := time.Parse(time.RFC3339, s.Deadline); err != nil || until.After(before.Add(agents.DefaultSeconds*time.Second+10*time.Second)) {
		t.Errorf("the task may take until %s", s.Deadline)
	}
}

// TestStructuredAgent: the result is the arguments of final_result, which is corrected twice and
// must be called.
func TestStructuredAgent(t *testing.T) {
	text := seller + "structured_output: true\nproperties:\n  count: {type: integer}\n"
	right, wrong := call("final_result", map[string]int{"count": 2}), call("final_result", map[string]string{"count": "two"})
	for name, tt := range map[string]struct {
		replies []any
		reply   string
	}{
		"at once":   {[]any{right}, `{"count":2}`},
		"corrected": {[]any{wrong, "two", wrong, right}, `{"count":2}`},
		"never":     {[]any{wrong}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCore(t)
			selling(c, text)
			m := says(map[string][]any{"seller": tt.replies, agents.Composer: {"It did not work."}})
			layer(c, m, "task", "manager")
			dispatchTurn(c)
			shown(c)
			if f := finished(c); f.Reply != tt.reply || (f.Status == taskDone) != (tt.reply != "") {
				t.Errorf("step.finish %+v", f)
			}
			if f := finished(c); tt.reply == "" && !strings.Contains(f.Reason, "not of the agent's form") {
				t.Errorf("failed for %q", f.Reason)
			}
			if got := closed(c); got.Response != tt.reply || (got.Status == "complete") != (tt.reply != "") {
				t.Errorf("plan.close %+v", got)
			}
			if r := m.requests("seller")[0]; r.Choice != model.ChoiceRequired || !slices.Equal(toolNames(r), []string{"crm_list", "search", "final_result"}) {
				t.Errorf("choice %q, tools %v", r.Choice, toolNames(r))
			}
			if n := len(c.ofType("plan")); n != 0 {
				t.Errorf("%d plans", n)
			}
		})
	}
}

// TestAgentOfLargeResults: the tools for large results are offered once there is one.
func TestAgentOfLargeResults(t *testing.T) {
	c := newCore(t)
	selling(c, seller)
	c.on("skill.call", done(catalog.SkillCallResult{Reference: &catalog.Reference{FileID: "f_1", SizeBytes: 60_000, SHA256: intents.Digest(nil), Sample: []string{"[", "1"}}}))
	c.on("exec_python", done(catalog.ExecPythonResult{Output: json.RawMessage(`2`)}))
	m := says(map[string][]any{"seller": {call("crm_list", struct{}{}), call("exec_python", execPythonArgs{Script: "print(2)", From: "r1"}), "Two."}})
	layer(c, m, "task", "manager")
	dispatchTurn(c)
	shown(c)
	if f := finished(c); f.Reply != "Two." {
		t.Errorf("step.finish %+v", f)
	}
	asked := m.requests("seller")
	if len(asked) != 3 || len(asked[0].Tools) != 2 || !slices.Equal(toolNames(asked[1]), []string{"crm_list", "read_lines", "exec_python", "search"}) {
		t.Errorf("%d requests, tools %v", len(asked), toolNames(asked[1]))
	}
	if p := c.ofType("exec_python"); len(p) != 1 || !strings.Contains(string(p[0].Args), `"from":"f_1"`) {
		t.Errorf("%+v", p)
	}
}

// TestAgentAtItsLimit: an agent that has used up its requests is asked for its answer once more,
// with tools that it may not call.
func TestAgentAtItsLimit(t *testing.T) {
	c := newCore(t)
	selling(c, seller+"limits: {request_limit: 2}\n")
	look := call("crm_list", struct{}{})
	m := says(map[string][]any{"seller": {look, look, "I saw two, and looked no further."}})
	layer(c, m, "task", "manager")
	dispatchTurn(c)
	shown(c)
	if f := finished(c); f.Reply != "I saw two, and looked no further." {
		t.Errorf("step.finish %+v", f)
	}
	if asked := m.requests("seller"); len(asked) != 3 || asked[2].Choice != model.ChoiceNone || len(asked[2].Tools) != len(asked[1].Tools) {
		t.Errorf("%d requests, the last with %v", len(asked), toolNames(asked[len(asked)-1]))
	}
}

// TestLoadFewer: a batch of skills that is refused because of one of them is halved until the
// others are loaded. A machine that is late or down is asked once.
func TestLoadFewer(t *testing.T) {
	var names []string
	for i := range 16 {
		names = append(names, fmt.Sprintf("crm.s%02d", i))
	}
	for code, most := range map[intents.Code]int{intents.PolicyDenied: 9, intents.ApprovalRequired: 17, intents.ExecutorTimeout: 1, intents.DispatchUnavailable: 1} {
		c := newCore(t)
		c.on("skill.load", func(p placed) *intents.Answer {
			var args catalog.SkillLoad
			if err := json.Unmarshal(p.Args, &args); err != nil {
				t.Error(err)
			}
			asked := args.Skills
			if args.Skill != "" {
				asked = []string{args.Skill}
			}
			if slices.Contains(asked, "crm.s05") {
				return refuse(code, "not this one")(p)
			}
			var got catalog.SkillLoadResult
			for _, name := range asked {
				got.Skills = append(got.Skills, catalog.Manifest{Name: name})
			}
			if args.Skill != "" {
				return done(got.Skills[0])(p)
			}
			return done(got)(p)
		})
		cfg := c.config("task", says(nil))
		w := &worker{cfg: cfg, submitter: cfg.submitter(c.signers[intents.RolePlanner])}
		w.req.Turn = c.turn()
		got, err := w.manifests(t.Context(), names, catalog.MaxLoaded)
		if err != nil {
			t.Errorf("%s: %v", code, err)
		}
		want := 15
		if most == 1 {
			want = 0
		}
		if n := len(c.ofType("skill.load")); n != most || len(got) != want || !slices.IsSortedFunc(got, func(a, b catalog.Manifest) int { return strings.Compare(a.Name, b.Name) }) {
			t.Errorf("%s: %d intents, %d skills", code, n, len(got))
		}
	}
}

// TestCalculates: an agent that declares exec_python has it from its first request; others have
// it once a result is too large to read.
func TestCalculates(t *testing.T) {
	for declared, want := range map[string]bool{"\ntools: [{name: exec_python}, {server: crm}]": true, "\ntools: [{server: crm}]": false} {
		c := newCore(t)
		selling(c, "name: seller\ndescription: You sell."+declared)
		m := says(map[string][]any{"seller": {"Four."}})
		layer(c, m, "task", "manager")
		dispatchTurn(c)
		shown(c)
		if got := slices.Contains(toolNames(m.requests("seller")[0]), "exec_python"); got != want {
			t.Errorf("%s: offered %v", declared, toolNames(m.requests("seller")[0]))
		}
	}
}
