package agentic

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state/agents"
)

// TestPlannerNamesAgents: a planner receives the agents that its steps may name, if there are
// any, and signs a step of one.
func TestPlannerNamesAgents(t *testing.T) {
	c := newCore(t)
	skillsOf(c, []string{"outlets"})
	answerTransitions(c, catalog.PlanView{PlanID: "plan_1", Status: catalog.PlanPlanning})
	c.on("agent.get", done(catalog.AgentGetResult{Others: []catalog.OtherAgent{{Agent: "seller", Description: "Sells what there is."}}}))
	step := catalog.PlanStep{Step: 1, Task: "Sell.", Skills: []string{}, Agent: "seller", ReturnSpec: catalog.ReturnSpec{Shape: "string", Reason: "to tell"}}
	m := says(map[string][]any{agents.Planner: {call("plan", planArgs{Steps: []catalog.PlanStep{step}})}})
	req := firstRequest(c)
	req.Agents = true
	if got := planner(c, m).plan(t.Context(), req, func(progress) {}); got.Plan == nil || len(got.Plan.Steps) != 1 || got.Plan.Steps[0].Agent != "seller" {
		t.Fatalf("%+v", got)
	}
	first := m.requests(agents.Planner)[0]
	var plan string
	for _, tool := range first.Tools {
		if tool.Name == "plan" {
			plan = string(tool.Schema)
		}
	}
	if text := first.Messages[len(first.Messages)-1].Text; !strings.Contains(text, "[Agents]") || !strings.Contains(text, "Sells what there is.") || !strings.Contains(plan, `"enum":["seller"]`) {
		t.Errorf("%s\n%s", text, plan)
	}
	if !json.Valid([]byte(plan)) {
		t.Errorf("the schema of the plan is no JSON: %s", plan)
	}
}

// TestTaskOfAnAgent: the agent of a step receives the step, and its reply becomes the result of
// the step; a reply that violates the contract ends it.
func TestTaskOfAnAgent(t *testing.T) {
	structured := seller + "structured_output: true\nproperties:\n  count: {type: integer}\n"
	for name, tt := range map[string]struct {
		text, shape string
		reply       any
		wrote, end  string
	}{
		"a text":               {seller, "string", "There are two.", `"There are two."`, taskDone},
		"a text like a number": {seller, "string", "2", `"2"`, taskDone},
		"JSON":                 {seller, "{count: integer}", `{"count": 2}`, `{"count":2}`, taskDone},
		"a structured result":  {structured, "{count: integer}", call("final_result", map[string]int{"count": 2}), `{"count":2}`, taskDone},
		"not what was asked":   {seller, "{count: integer}", "There are two.", "", taskInsufficient},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCore(t)
			selling(c, tt.text)
			c.on("write_memory", done(catalog.WriteMemoryResult{Key: taskKey, Validated: true}))
			c.on("step.finish", done(catalog.PlanView{}))
			m := says(map[string][]any{"seller": {call("crm_list", struct{}{}), tt.reply}})
			w := tasks(c, m)
			req := opened(c, w, time.Now().Add(time.Minute))
			req.Agent = "seller"
			req.Step = catalog.PlanStep{Step: 1, Task: "Sell.", Skills: []string{"crm.list"}, Agent: "seller", ReturnSpec: catalog.ReturnSpec{Shape: tt.shape, Reason: "to tell"}}
			if got := w.run(t.Context(), req); got.Status != tt.end {
				t.Fatalf("%+v", got)
			}
			f := finish(c)
			if f.Status != tt.end || f.Reply != "" || (f.MemoryKey == taskKey) != (tt.wrote != "") {
				t.Errorf("step.finish %+v", f)
			}
			var wrote catalog.WriteMemory
			if all := c.ofType("write_memory"); len(all) > 0 {
				if err := json.Unmarshal(all[0].Args, &wrote); err != nil {
					t.Fatal(err)
				}
			}
			if d := cmp.Diff(tt.wrote, string(wrote.Data)); d != "" {
				t.Errorf("write_memory (-want +got):\n%s", d)
			}
			first := m.requests("seller")[0]
			if text := first.Messages[len(first.Messages)-1].Text; !strings.Contains(text, "Sell.") || !strings.Contains(text, "How many outlets are there?") || !strings.Contains(text, "return_schema") {
				t.Errorf("told %s", text)
			}
		})
	}
}
