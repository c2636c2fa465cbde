package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// What the system does with a model that errs.

// TestBadScriptThenGood: the traceback goes back to the model, and the next
// script is the one that counts.
func TestBadScriptThenGood(t *testing.T) {
	t.Parallel()
	m := &mind{
		plan: func(planning) model.Call {
			return steps(step(1, "count the stock", "stock_list", 0, "{total: integer}"))
		},
		act: func(in working) action {
			if len(in.Calls) == 0 {
				return use("stock_list", "{}")
			}
			return extract
		},
		script: func(in scripting) string {
			switch {
			case in.Error == "":
				return "raise ValueError('no such column')"
			case strings.Contains(in.Error, "no such column"):
				return `print('{"total": "twelve"}')`
			}
			return totalScript
		},
	}
	s := start(t, setup{Skills: []string{serveStock(t).url}, Model: m})
	got := s.ask(s.as("ana"), stockTask)
	if got.Status != "complete" {
		t.Fatalf("%s: %s", got.Status, got.Reason)
	}
	sameJSON(t, map[string]int{"total": 12}, got.Data)
	checkHistory(t, got.Plan, 0)
	ran := got.called("exec_python")
	if len(ran) != 3 || ran[0].Outcome.Code != intents.ExecutorFailed || ran[1].Outcome.Code != intents.OK || ran[2].Outcome.Code != intents.OK {
		t.Fatalf("exec_python intents %+v", ran)
	}
	if told := m.scriptErrors(); len(told) != 2 || !strings.Contains(told[0], "ValueError") || !strings.Contains(told[1], "/total") {
		t.Errorf("the model was told %q", told)
	}
}

// TestSkillOutsideTheStep: the plan gave the step one skill; the model is told that the other is
// not its own, and nothing is called.
func TestSkillOutsideTheStep(t *testing.T) {
	t.Parallel()
	var said string
	m := &mind{
		plan: func(planning) model.Call {
			return steps(step(1, "list the stock", "stock_list", 0, stockShape))
		},
		act: func(in working) action {
			switch len(in.Calls) {
			case 0:
				return use("price_list", "{}")
			case 1:
				said = in.Calls[0].Error
				return use("stock_list", "{}")
			}
			return finish
		},
	}
	server := serveStock(t)
	s := start(t, setup{Skills: []string{server.url}, Model: m})
	got := s.ask(s.as("ana"), stockTask)
	if got.Status != "complete" {
		t.Fatalf("%s: %s", got.Status, got.Reason)
	}
	sameJSON(t, stock, got.Data)
	if !strings.Contains(said, `no tool "price_list"`) {
		t.Errorf("the model was told %q", said)
	}
	if n := server.count("price_list"); n != 0 {
		t.Errorf("price_list was called %d times", n)
	}
	calls := got.called("skill.call")
	if len(calls) != 1 || calls[0].Decision.Code != intents.OK {
		t.Errorf("skill.call intents %+v", calls)
	}
}

// many steps, each after the one before it.
func many(first, n int) model.Call {
	var list []catalog.PlanStep
	for i := range n {
		s := step(first+i, fmt.Sprintf("list the stock, part %d", i+1), "stock_list", 0, stockShape)
		list = append(list, s)
	}
	return steps(list...)
}

// TestElevenSteps: a plan that is too long never reaches the record.
func TestElevenSteps(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		plans []model.Call
		steps int // of the plan in the end; 0: there is none
		ends  string
	}{
		{"corrected", []model.Call{many(1, 11), many(1, 2)}, 2, "complete"},
		{"ten are allowed", []model.Call{many(1, 10)}, 10, "complete"},
		{"said three times", []model.Call{many(1, 11), many(1, 11), many(1, 11)}, 0, "failed"},
		{"said to be too much", []model.Call{many(1, 11), infeasible("It takes more steps than there may be.")}, 0, "failed"},
		{"the user is asked", []model.Call{many(1, 11), call("plan", `{"ask":"Which ten of them?"}`)}, 0, "needs_input"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			said := 0
			m := &mind{
				plan: func(planning) model.Call {
					said++
					return tt.plans[min(said, len(tt.plans))-1]
				},
				act: listStock,
			}
			s := start(t, setup{Skills: []string{serveStock(t).url}, Model: m})
			got := s.ask(s.as("ana"), stockTask)
			if said != len(tt.plans) {
				t.Errorf("the model was asked %d times", said)
			}
			if tt.steps > 0 {
				if got.Status != tt.ends || len(got.Plan.Steps) != tt.steps {
					t.Fatalf("%s with %d steps: %s", got.Status, len(got.Plan.Steps), got.Reason)
				}
				return
			}
			if got.Status != tt.ends || (got.Failure == nil) != (tt.ends == "needs_input") || len(got.called("plan")) != 0 || len(got.called("step")) != 0 {
				t.Errorf("%s, failure %+v, %d plans", got.Status, got.Failure, len(got.called("plan")))
			}
			if tt.ends == "needs_input" {
				s.answers(m, got)
			}
		})
	}
}

// answers sends the answer to a turn's question in its session: the planner's model reads both. Clients
// of OpenAI's API read the question as the answer.
func (s *system) answers(m *mind, asked turn) {
	s.t.Helper()
	if asked.Response != "Which ten of them?" || asked.Plan.Status != catalog.PlanNeedsInput || asked.Plan.Response != asked.Response {
		s.t.Errorf("asked %q, plan %s %q", asked.Response, asked.Plan.Status, asked.Plan.Response)
	}
	var next turn
	s.call(s.as("ana"), http.MethodPost, "/agent/run", map[string]string{"message": "The last ten.", "session_id": asked.SessionID}, &next)
	if next.Status != "needs_input" || !m.requested("The last ten.") || !m.requested(asked.Response) {
		s.t.Errorf("the next turn is %s: %s", next.Status, next.Reason)
	}
	var chat struct {
		Choices []struct {
			Message struct{ Content string } `json:"message"`
		} `json:"choices"`
	}
	s.call(s.as("ana"), http.MethodPost, "/v1/chat/completions", json.RawMessage(`{"model":"planner","messages":[{"role":"user","content":"List it"}]}`), &chat)
	if len(chat.Choices) != 1 || chat.Choices[0].Message.Content != asked.Response {
		s.t.Errorf("a client of OpenAI's API reads %+v", chat)
	}
}

// TestElevenStepsInAll: ten new ones after one that is done are one too many.
func TestElevenStepsInAll(t *testing.T) {
	t.Parallel()
	m := &mind{
		plan: func(in planning) model.Call {
			switch {
			case in.Failed == nil:
				return stockPlan()
			case len(in.Violations) == 0:
				return many(3, 10)
			}
			return many(3, 9)
		},
		act: func(in working) action {
			if in.Task == "value the stock" {
				return insufficient("there is no price for a bolt", "")
			}
			return listStock(in)
		},
	}
	s := start(t, setup{Skills: []string{serveStock(t).url}, Model: m})
	got := s.ask(s.as("ana"), stockTask)
	if got.Status != "complete" || len(got.Plan.Steps) != catalog.MaxSteps {
		t.Fatalf("%s with %d steps: %s", got.Status, len(got.Plan.Steps), got.Reason)
	}
	if n := len(got.called("plan")); n != 2 {
		t.Errorf("%d plans were signed", n)
	}
	asked := m.plannings()
	if last := asked[len(asked)-1]; len(asked) != 3 || !slices.ContainsFunc(last.Violations, func(v string) bool { return strings.Contains(v, "room for 9 steps") }) {
		t.Errorf("asked %d times, the last time with violations %q", len(asked), last.Violations)
	}
}

// TestLargeDataIsTruncated: the model sees the first lines of a large response
// and nothing of what lies deep in it, whatever it asks for.
func TestLargeDataIsTruncated(t *testing.T) {
	t.Parallel()
	const first = "the first row of all"
	list := make([]map[string]any, 0, 3000)
	for i := range cap(list) {
		list = append(list, map[string]any{"item": fmt.Sprintf("item number %d", i), "quantity": i})
	}
	list[0]["item"], list[2900]["item"] = first, deep
	scripts := 0
	m := &mind{
		plan: func(in planning) model.Call {
			return steps(step(in.FirstStep, "list the stock", "stock_list", 0, "{total: integer, deepest: integer}"))
		},
		act: func(in working) action {
			if len(in.Calls) == 0 {
				return use("stock_list", "{}")
			}
			return extract
		},
		script: func(scripting) string {
			if scripts++; scripts == 1 {
				return "print(open(input_file).read())" // an attempt to see it all
			}
			return strings.ReplaceAll(totalScript, "}))", `, "deepest": max(r["quantity"] for r in rows if r["item"].startswith("marker"))}))`)
		},
	}
	s := start(t, setup{Model: m, Skills: []string{serveSkills(t, skill{name: "stock_list", about: "The stock of the warehouse.", do: always(list)}).url}})
	got := s.ask(s.as("ana"), stockTask)
	if got.Status != "complete" {
		t.Fatalf("%s: %s", got.Status, got.Reason)
	}
	sameJSON(t, map[string]int{"total": 3000 * 2999 / 2, "deepest": 2900}, got.Data)
	if !m.requested(first) {
		t.Error("the model saw no sample")
	}
	if m.requested(deep) {
		t.Error("the model was shown what stands deep in the large response")
	}
	if large := got.events("large_response.detected"); len(large) == 0 || scripts != 2 || len(got.Plan.History) != 1 {
		t.Errorf("large responses %v, %d scripts, history %+v", large, scripts, got.Plan.History)
	}
	var result catalog.SkillCallResult
	if err := json.Unmarshal(got.called("skill.call")[0].Outcome.Result, &result); err != nil {
		t.Fatal(err)
	}
	if result.Reference == nil || len(result.Output) != 0 || len(strings.Join(result.Sample, "")) > catalog.SampleLines*catalog.MaxLine {
		t.Errorf("the outcome of the call holds %d bytes of data and the reference %+v", len(result.Output), result.Reference)
	}
}
