package agentic

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state/agents"
)

// shop has the core offer a skill of each effect.
func shop(c *core) {
	managed(c)
	offers(c, []catalog.Manifest{
		{Name: "outlets", InputSchema: json.RawMessage(`{"type":"object"}`), Effect: catalog.Pure},
		{Name: "refund", InputSchema: json.RawMessage(`{"type":"object","properties":{"order":{"type":"string"}},"required":["order"]}`), Effect: catalog.Once},
		{Name: "update", InputSchema: json.RawMessage(`{"type":"object"}`), Effect: catalog.Idempotent},
	})
}

// TestDirect: a look-up takes two requests to the model. Its call is signed by a task, and the
// text of the second reply is the answer.
func TestDirect(t *testing.T) {
	c := newCore(t)
	managed(c)
	m := says(map[string][]any{agents.Planner: {callIt, composed}})
	layer(c, m, allRoles...)
	dispatchTurn(c)
	frames := shown(c)
	if d := cmp.Diff([]string{"planning", "executing", "step_started", "calling", "token", "step_done", "answer", "done"}, kinds(t, frames)); d != "" {
		t.Errorf("frames (-want +got):\n%s", d)
	}
	want := []string{"plan.claim", "soul.get", "session.get", "skill.find", "skill.load", "plan", "step", "skill.load", "skill.call", "write_memory", "step.finish", "read_memory", "session.append", "plan.close"}
	if d := cmp.Diff(want, types(c.allPlaced())); d != "" {
		t.Errorf("intents (-want +got):\n%s", d)
	}
	if got := closed(c); got.Response != composed || got.Status != "complete" {
		t.Errorf("closed with %+v", got)
	}
	for _, p := range c.ofType("skill.call") {
		if p.Role != intents.RoleTask || p.Place.Step != 1 || p.Call != "1.0" {
			t.Errorf("the call is %+v", p)
		}
	}
	asked := m.requests(agents.Planner)
	if len(asked) != 2 {
		t.Fatalf("%d requests", len(asked))
	}
	if got := results(asked[1]); len(got) != 1 || !strings.Contains(got[0], `"count":10`) {
		t.Errorf("the second request has the results %v", got)
	}
	if d := cmp.Diff(asked[0].Messages, asked[1].Messages[:2]); d != "" {
		t.Errorf("the conversation does not go on (-before +after):\n%s", d)
	}
	if d := cmp.Diff(asked[0].Tools, asked[1].Tools); d != "" {
		t.Errorf("the tools change, which no cache of prompts serves (-before +after):\n%s", d)
	}
	var kept catalog.WriteMemory
	if err := json.Unmarshal(c.ofType("write_memory")[0].Args, &kept); err != nil || string(kept.Data) != `"`+composed+`"` {
		t.Errorf("kept %s, error %v", kept.Data, err)
	}
}

// TestDirectOffers: the first request has tools for pure skills alone, and says which others
// change data.
func TestDirectOffers(t *testing.T) {
	c := newCore(t)
	shop(c)
	m := says(map[string][]any{agents.Planner: {composed}})
	layer(c, m, allRoles...)
	dispatchTurn(c)
	shown(c)
	first := m.requests(agents.Planner)[0]
	var tools []string
	for _, tool := range first.Tools {
		tools = append(tools, tool.Name)
	}
	if d := cmp.Diff([]string{"outlets", "exec_python", "find_relevant_skills", "load_skill", "plan"}, tools); d != "" {
		t.Errorf("tools (-want +got):\n%s", d)
	}
	skills, _ := block[[]plannable](t, first, "Skills")
	for _, s := range skills {
		if s.Changes != (s.Name != "outlets") {
			t.Errorf("%+v", s)
		}
	}
	if got := closed(c); got.Response != composed || len(m.requests(agents.Planner)) != 1 {
		t.Errorf("answered with %+v", got)
	}
}

// TestDirectPlans: a plan that the model writes after a result is signed by the planner as the
// next revision, without another request to a model. It uses what was ranked before the result
// alone.
func TestDirectPlans(t *testing.T) {
	refund := catalog.PlanStep{Step: 1, Task: "Refund O-5001", Skills: []string{"refund"}, ReturnSpec: catalog.ReturnSpec{Shape: "string", Reason: "told"}}
	other := refund
	other.Skills = []string{"wipe"}
	for name, tt := range map[string]struct {
		step  catalog.PlanStep
		asked int // of the planner's model
	}{"ranked": {refund, 2}, "found in a result": {other, 3}} {
		t.Run(name, func(t *testing.T) {
			c := newCore(t)
			shop(c)
			m := says(map[string][]any{
				agents.Planner:  {callIt, call("plan", planArgs{Steps: []catalog.PlanStep{tt.step}}), call("plan", planArgs{Infeasible: "no"})},
				agents.Executor: {call("refund", map[string]string{"order": "O-5001"}), call("write_memory", writeMemoryArgs{Data: json.RawMessage(`"done"`)})},
				agents.Composer: {composed},
			})
			layer(c, m, allRoles...)
			dispatchTurn(c)
			shown(c)
			if n := len(m.requests(agents.Planner)); n != tt.asked {
				t.Errorf("the planner's model was asked %d times, not %d", n, tt.asked)
			}
			var called []string
			for _, p := range c.ofType("skill.call") {
				var a catalog.SkillCall
				if err := json.Unmarshal(p.Args, &a); err != nil {
					t.Error(err)
				}
				called = append(called, a.Skill)
			}
			if want := []string{"outlets", "refund"}[:4-tt.asked]; cmp.Diff(want, called) != "" {
				t.Errorf("called %v", called)
			}
			if got := c.ofType("step.finish")[0]; !strings.Contains(string(got.Args), `"status":"insufficient"`) {
				t.Errorf("the first step ended with %s", got.Args)
			}
		})
	}
}

// TestDirectAnswersByPlan: a model may give the answer from results by plan, too.
func TestDirectAnswersByPlan(t *testing.T) {
	c := newCore(t)
	managed(c)
	m := says(map[string][]any{agents.Planner: {callIt, call("plan", planArgs{Answer: composed})}})
	layer(c, m, allRoles...)
	dispatchTurn(c)
	shown(c)
	if got := closed(c); got.Response != composed || len(m.requests(agents.Planner)) != 2 {
		t.Errorf("closed with %+v", got)
	}
}

// TestDirectNamesAgents: a plan after a result may name the agents that a first one may.
func TestDirectNamesAgents(t *testing.T) {
	c := newCore(t)
	managed(c)
	c.on("agent.get", done(catalog.AgentGetResult{Others: []catalog.OtherAgent{{Agent: "support", Description: "helps"}}}))
	m := says(map[string][]any{agents.Planner: {callIt}})
	req := firstRequest(c)
	req.Agents = true
	got := planner(c, m).plan(t.Context(), req, func(progress) {})
	if got.Direct == nil || len(got.Direct.Others) != 1 {
		t.Fatalf("%+v", got)
	}
	written := says(map[string][]any{agents.Planner: {call("plan", planArgs{Steps: []catalog.PlanStep{{Step: 1, Task: "help", Skills: []string{}, Agent: "support", ReturnSpec: catalog.ReturnSpec{Shape: "string", Reason: "told"}}}})}})
	w := tasks(c, written)
	run := opened(c, w, time.Now().Add(time.Minute))
	run.Step.ReturnSpec.Shape, run.Direct = "string", got.Direct
	if reply := w.run(t.Context(), run); reply.Written == nil || reply.Written.Plan.Steps[0].Agent != "support" {
		t.Errorf("%+v", reply)
	}
}

// TestDirectAgain: a driver that continues the plan does not have the conversation. Its step is
// carried out as any other, from the calls that were made.
func TestDirectAgain(t *testing.T) {
	c := newCore(t)
	managed(c)
	step := catalog.PlanStep{Step: 1, Task: "How many outlets are there?", Skills: []string{"outlets"}, ReturnSpec: catalog.ReturnSpec{Shape: "string", Reason: "the answer to the user"}}
	answerTransitions(c, catalog.PlanView{PlanID: "plan_1", Status: catalog.PlanExecuting, Task: step.Task, Revision: 1, PlanDigest: digest, Steps: []catalog.StepView{{PlanStep: step, Status: catalog.StepPending, Revision: 1}}})
	c.on("read_memory", done(catalog.ReadMemoryResult{Key: taskKey, Data: json.RawMessage(`"There are ten."`)}))
	m := says(map[string][]any{agents.Executor: {callIt, call("write_memory", writeMemoryArgs{Data: json.RawMessage(`"There are ten."`)})}})
	layer(c, m, allRoles...)
	dispatchTurn(c)
	frames := shown(c)
	if got := dataOf[bus.AnswerData](t, frames[len(frames)-2]); got.Response != composed {
		t.Errorf("answered %+v", got)
	}
}

// TestDirectWithoutText: a reply that says nothing is no answer.
func TestDirectWithoutText(t *testing.T) {
	c := newCore(t)
	managed(c)
	m := says(map[string][]any{agents.Planner: {callIt, "", call("plan", planArgs{Infeasible: "nothing answers"})}})
	layer(c, m, allRoles...)
	dispatchTurn(c)
	shown(c)
	if got := closed(c); got.Status != "failed" || len(c.ofType("write_memory")) != 0 {
		t.Errorf("closed with %+v", got)
	}
}

// TestPlannedCalls: a change whose input is known takes two requests to a model: the plan with
// the call, and the answer from its result. A call that its step may not make, or whose input is
// wrong, is corrected before the plan is signed.
func TestPlannedCalls(t *testing.T) {
	refund := catalog.PlanStep{Step: 1, Task: "Refund O-5001", Skills: []string{"refund"}, ReturnSpec: catalog.ReturnSpec{Shape: "string", Reason: "told"}}
	plan := func(calls ...plannedCall) model.Call {
		return call("plan", planArgs{Steps: []catalog.PlanStep{refund}, Calls: calls})
	}
	good := plannedCall{1, "refund", json.RawMessage(`{"order":"O-5001"}`)}
	for name, tt := range map[string]struct {
		wrong plannedCall
		says  string
	}{
		"right":           {good, ""},
		"another step's":  {plannedCall{2, "refund", good.Input}, `call 0: step 2 has no skill`},
		"another skill":   {plannedCall{1, "outlets", good.Input}, `call 0: step 1 has no skill`},
		"a missing input": {plannedCall{1, "refund", json.RawMessage(`{}`)}, `call 0: input/order: is required`},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCore(t)
			shop(c)
			m := says(map[string][]any{
				agents.Planner:  {plan(tt.wrong), plan(good)},
				agents.Executor: {call("write_memory", writeMemoryArgs{Data: json.RawMessage(`"done"`), Answer: "O-5001 is refunded."})},
			})
			layer(c, m, allRoles...)
			dispatchTurn(c)
			shown(c)
			asked := m.requests(agents.Planner)
			if (len(asked) == 1) != (tt.says == "") {
				t.Errorf("the planner's model was asked %d times", len(asked))
			}
			if tt.says != "" && !strings.Contains(results(asked[len(asked)-1])[0], tt.says) {
				t.Errorf("it is told %s", results(asked[len(asked)-1]))
			}
			calls := c.ofType("skill.call")
			if len(calls) != 1 || !strings.Contains(string(calls[0].Args), `"order":"O-5001"`) || calls[0].Role != intents.RoleTask || calls[0].Call != "1.0" {
				t.Errorf("called %+v", calls)
			}
			if got := closed(c); got.Response != "O-5001 is refunded." || len(m.requests(agents.Executor)) != 1 || len(m.requests(agents.Composer)) != 0 {
				t.Errorf("closed with %+v", got)
			}
		})
	}
}
