package e2e

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state/agents"
)

const (
	stockTask  = "What is the stock worth at the prices of today?"
	stockShape = "array<{item: string, quantity: integer}>"
)

type stockItem struct {
	Item     string `json:"item"`
	Quantity int    `json:"quantity"`
}

var stock = []stockItem{{"bolt", 7}, {"nut", 2}, {"washer", 3}}

// serveStock has two skills that declare no output, and one that is down.
func serveStock(t *testing.T) *skillServer {
	t.Helper()
	return serveSkills(t,
		skill{name: "stock_list", about: "The stock of the warehouse: items and their quantities.", do: always(stock)},
		skill{name: "price_list", about: "The prices of today.", do: always([]any{})},
		skill{
			name: "stock_archive", about: "The stock as it was in the past.",
			do: func(json.RawMessage) (any, error) { return nil, errors.New("the archive is closed") },
		},
	)
}

// stockPlan begins with the stock; then comes what the test is about.
func stockPlan() model.Call {
	return steps(step(1, "list the stock", "stock_list", 0, stockShape), step(2, "value the stock", "price_list", 1, "{total: integer}"))
}

// listStock is step 1 done well.
func listStock(in working) action {
	if len(in.Calls) == 0 {
		return use("stock_list", "{}")
	}
	return finish
}

const totalScript = `import json
rows = json.load(open(input_file))
print(json.dumps({"total": sum(r["quantity"] for r in rows)}))
`

// TestInsufficientReplansTheRest: the step that was done stays, with its
// memory key; what it called is not called again.
func TestInsufficientReplansTheRest(t *testing.T) {
	t.Parallel()
	m := &mind{
		plan: func(in planning) model.Call {
			if in.Failed == nil {
				return stockPlan()
			}
			return steps(step(in.FirstStep, "count the stock", "", 1, "{total: integer}"))
		},
		act: func(in working) action {
			switch {
			case in.Step == 1:
				return listStock(in)
			case len(in.Skills) > 0:
				return insufficient("there is no price for a bolt", "count the items instead")
			}
			return extract
		},
		script: func(scripting) string { return totalScript },
	}
	server := serveStock(t)
	s := start(t, setup{Skills: []string{server.url}, Model: m})
	got := s.ask(s.as("ana"), stockTask)
	if got.HTTP != http.StatusOK || got.Status != "complete" {
		t.Fatalf("HTTP %d, %s: %s", got.HTTP, got.Status, got.Reason)
	}
	sameJSON(t, map[string]int{"total": 12}, got.Data)
	if n := server.count("stock_list"); n != 1 {
		t.Errorf("stock_list was called %d times", n)
	}

	plans := m.plannings()
	if len(plans) != 2 {
		t.Fatalf("%d plans were asked for", len(plans))
	}
	replan := plans[1]
	if replan.Task != stockTask || replan.FirstStep != 3 || replan.MaxSteps != 9 || len(replan.Completed) != 1 || replan.Completed[0].Step.Step != 1 {
		t.Fatalf("the planner was told %+v", replan)
	}
	sameJSON(t, stock, replan.Completed[0].Result)
	if f := replan.Failed; f.Step.Step != 2 || f.Trigger != "insufficient" || f.Reason != "there is no price for a bolt" || f.Suggestion != "count the items instead" {
		t.Errorf("the planner was told of the failure %+v", f)
	}

	one, two := got.Plan.Steps[0], got.Plan.Steps[1]
	var written catalog.WriteMemoryResult
	if err := json.Unmarshal(got.called("write_memory")[0].Outcome.Result, &written); err != nil {
		t.Fatal(err)
	}
	if one.Revision != 1 || one.Status != catalog.StepDone || one.MemoryKey != written.Key || two.Revision != 2 || two.Task != "count the stock" {
		t.Errorf("steps %+v; the first wrote %s", got.Plan.Steps, written.Key)
	}
	checkHistory(t, got.Plan, 1, catalog.Replan{Attempt: 1, Trigger: "insufficient", FailedStep: 2, Shape: "{total: integer}", Reason: "there is no price for a bolt"})
	for _, typ := range []string{"subagent.insufficient", "replan.triggered", "plan.revised"} {
		if n := len(got.events(typ)); n != 1 {
			t.Errorf("%d events %s", n, typ)
		}
	}
	if n := len(got.called("plan.claim")); n != 1 {
		t.Errorf("%d claims: a replan needs no new one", n)
	}
}

func checkHistory(t *testing.T, p catalog.PlanView, count int, want ...catalog.Replan) {
	t.Helper()
	if d := cmp.Diff(want, p.History, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(catalog.Replan{}, "RevisedAt")); d != "" {
		t.Errorf("history (-want +got):\n%s", d)
	}
	if p.ReplanCount != count {
		t.Errorf("replan count %d, want %d", p.ReplanCount, count)
	}
}

// TestContractViolationReplans: what is too large for the task to check is
// checked where it is written, and the record itself ends the step.
func TestContractViolationReplans(t *testing.T) {
	t.Parallel()
	m := &mind{
		plan: func(in planning) model.Call {
			if in.Failed == nil {
				return stockPlan()
			}
			return steps(step(in.FirstStep, "count the stock", "", 1, "{total: integer}"))
		},
		act: func(in working) action {
			if in.Step == 1 {
				return listStock(in)
			}
			return extract
		},
		script: func(in scripting) string {
			if in.Task == "value the stock" {
				return `print('{"total": "' + 'x' * 60000 + '"}')`
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
	writes := got.called("write_memory")
	if len(writes) != 3 || writes[1].Outcome.Code != intents.ContractViolation || writes[1].Outcome.Status != intents.Failed {
		t.Fatalf("write_memory intents %+v", writes)
	}
	if len(got.Plan.History) != 1 {
		t.Fatalf("history %+v", got.Plan.History)
	}
	checkHistory(t, got.Plan, 1, catalog.Replan{Attempt: 1, Trigger: "contract_violation", FailedStep: 2, Shape: "{total: integer}", Reason: writes[1].Outcome.Reason})
	if !strings.Contains(got.Plan.History[0].Reason, "/total") || strings.Contains(got.Plan.History[0].Reason, "xxx") {
		t.Errorf("reason %q", got.Plan.History[0].Reason)
	}
	if n := len(got.called("step.finish")); n != 2 {
		t.Errorf("%d intents step.finish, want those of the two steps that were done", n)
	}
	if v := got.events("contract_violation"); len(v) != 1 || v[0]["expected_shape"] != "{total: integer}" || v[0]["actual_shape"] != "{total: string}" {
		t.Errorf("events %v", v)
	}
}

// TestFailureReplans: a skill that fails, and a task whose model is gone.
func TestFailureReplans(t *testing.T) {
	t.Parallel()
	gone := &model.Error{Reason: "the model cannot be reached"}
	for _, tt := range []struct {
		name, trigger, reason string
		broken                func(model.Request) error
	}{
		{"skill", "insufficient", "stock_archive: the archive is closed", nil},
		{"model", "failed", "the model could not answer: the model cannot be reached", func(r model.Request) error {
			if r.Agent == agents.Executor && holds(r, "stock_archive") {
				return gone
			}
			return nil
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := serveStock(t)
			m := &mind{
				broken: tt.broken,
				plan: func(in planning) model.Call {
					name := "stock_archive"
					if in.Failed != nil {
						name = "stock_list"
					}
					return steps(step(in.FirstStep, "list the stock", name, 0, stockShape))
				},
				act: func(in working) action {
					switch {
					case len(in.Calls) == 0:
						return use(in.Skills[0], "{}")
					case in.Calls[0].Error != "":
						return insufficient(in.Calls[0].Skill+": the archive is closed", "")
					}
					return finish
				},
			}
			s := start(t, setup{Skills: []string{server.url}, Model: m})
			got := s.ask(s.as("ana"), stockTask)
			if got.Status != "complete" {
				t.Fatalf("%s: %s", got.Status, got.Reason)
			}
			sameJSON(t, stock, got.Data)
			checkHistory(t, got.Plan, 1, catalog.Replan{Attempt: 1, Trigger: tt.trigger, FailedStep: 1, Shape: "array<{item: string, quantity: integer}>", Reason: tt.reason})
			if tt.broken != nil {
				return
			}
			var said string
			for _, in := range requestsOf(m, agents.Executor, workingOf) {
				if len(in.Calls) > 0 && in.Calls[0].Error != "" {
					said = in.Calls[0].Error
				}
			}
			if !strings.Contains(said, "the archive is closed") {
				t.Errorf("the model was told %q", said)
			}
		})
	}
}

// TestThirdReplanIsTheLast: the fourth failure ends the plan, with what was
// done and what failed last.
func TestThirdReplanIsTheLast(t *testing.T) {
	t.Parallel()
	m := &mind{
		plan: func(in planning) model.Call {
			if in.Failed == nil {
				return stockPlan()
			}
			return steps(step(in.FirstStep, "value the stock again", "price_list", 1, "{total: integer}"))
		},
		act: func(in working) action {
			if in.Step == 1 {
				return listStock(in)
			}
			return insufficient("there is no price for a bolt", "")
		},
	}
	server := serveStock(t)
	s := start(t, setup{Skills: []string{server.url}, Model: m})
	got := s.ask(s.as("ana"), stockTask)
	if got.HTTP != http.StatusOK || got.Status != "failed" || got.Plan.Status != catalog.PlanFailed {
		t.Fatalf("HTTP %d, %s, plan %s", got.HTTP, got.Status, got.Plan.Status)
	}
	want := &catalog.Failure{
		Reason: "max replan attempts reached", CompletedSteps: []int{1},
		LastFailure: &catalog.LastFailure{Step: 5, Reason: "there is no price for a bolt"},
	}
	for _, f := range []*catalog.Failure{got.Failure, got.Plan.Failure} {
		if d := cmp.Diff(want, f); d != "" {
			t.Errorf("failure (-want +got):\n%s", d)
		}
	}
	if got.Plan.ReplanCount != catalog.MaxReplans || len(got.Plan.History) != catalog.MaxReplans+1 || got.Plan.Revision != catalog.MaxReplans+1 {
		t.Errorf("replan count %d, %d triggers, revision %d", got.Plan.ReplanCount, len(got.Plan.History), got.Plan.Revision)
	}
	if len(got.called("plan")) != catalog.MaxReplans+1 || server.count("stock_list") != 1 {
		t.Errorf("%d plans, stock_list called %d times", len(got.called("plan")), server.count("stock_list"))
	}
	if !strings.HasPrefix(got.Reason, "I could not") || strings.Contains(got.Reason, "max replan") {
		t.Errorf("not plain language: %q", got.Reason)
	}
}

// TestNothingElseToTry: a model that repeats a call that fails is asked for the end of its step after
// the third time; after a call that nobody could approve no other plan is written.
func TestNothingElseToTry(t *testing.T) {
	t.Parallel()
	for skill, want := range map[string]struct {
		calls, revisions int
		cause            string
	}{
		"stock_archive": {calls: 3 * (catalog.MaxReplans + 1), revisions: catalog.MaxReplans + 1},
		"price_list":    {revisions: 1, cause: catalog.NeedsApprovers},
	} {
		m := &mind{
			plan: func(in planning) model.Call { return steps(step(in.FirstStep, "look", skill, 0, "string")) },
			act:  func(working) action { return use(skill, "{}") },
		}
		server := serveStock(t)
		s := start(t, setup{Skills: []string{server.url}, Model: m})
		s.operate("admin.put", catalog.AdminPut{Tenant: "default", User: &catalog.User{UserID: "ana", Roles: []string{"user", "approver"}}})
		s.operate("admin.put", catalog.AdminPut{Tenant: "default", Data: &catalog.Data{Key: "approval", Value: json.RawMessage(`{"skills":["price_list"]}`)}})
		got := s.ask(s.as("ana"), stockTask)
		if last := got.Plan.Steps[len(got.Plan.Steps)-1]; got.Status != "failed" || last.Cause != want.cause || want.cause != "" && !strings.Contains(got.Reason, "nobody can approve") {
			t.Errorf("%s: %+v", skill, got.Plan)
		}
		if n := server.count(skill); n != want.calls || len(got.called("plan")) != want.revisions {
			t.Errorf("%s: %d calls, %d revisions, want %+v", skill, n, len(got.called("plan")), want)
		}
	}
}
