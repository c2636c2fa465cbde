package agentic

import (
	"encoding/json"
	"strings"
	"testing"

	"aob.dev/writ/intents/catalog"
)

// known are the skills: outlets lists places, rank arranges any rows, mute declares no output.
var known = map[string]catalog.Manifest{
	"outlets": {
		InputSchema:  json.RawMessage(`{"type":"object","properties":{"active":{"type":"boolean"}}}`),
		OutputSchema: json.RawMessage(`{"type":"array","items":{"type":"object","properties":{"name":{"type":"string","title":"Outlet"},"city":{"type":"string"}}}}`),
	},
	"mute":  {InputSchema: json.RawMessage(`{"type":"object"}`)},
	"empty": {InputSchema: json.RawMessage(`{"type":"object"}`), OutputSchema: json.RawMessage(`{"type":"object"}`)},
}

// planned is a step with a shape.
func planned(n int, shape string, from []int, skills ...string) catalog.PlanStep {
	return catalog.PlanStep{Step: n, Task: "x", Skills: skills, ReturnSpec: catalog.ReturnSpec{Shape: shape}, Inputs: from}
}

func TestVerifyPlan(t *testing.T) {
	const names = "array<{name: string}>"
	fresh := planRequest{FirstStep: 1}
	after := planRequest{FirstStep: 3, soFar: soFar{Completed: []stepResult{
		{Step: catalog.PlanStep{Step: 1, ReturnSpec: catalog.ReturnSpec{Shape: names}}}, {Step: catalog.PlanStep{Step: 2, ReturnSpec: catalog.ReturnSpec{Shape: "integer"}}},
	}}}
	many := func(n int) (steps []catalog.PlanStep) {
		for i := range n {
			steps = append(steps, planned(i+1, names, nil, "outlets"))
		}
		return steps
	}
	tests := []struct {
		name   string
		steps  []catalog.PlanStep
		answer string
		req    planRequest
		says   []string // in order; none: no error
	}{
		{"one step", []catalog.PlanStep{planned(1, names, nil, "outlets")}, "", fresh, nil},
		{"two, chained", []catalog.PlanStep{planned(1, names, nil, "outlets"), planned(2, names, []int{1})}, "", fresh, nil},
		{"going on from completed steps", []catalog.PlanStep{planned(3, "{name: string}", []int{1}), planned(4, "integer", []int{2})}, "", after, nil},
		{"as many as there may be", many(10), "", fresh, nil},
		{"an answer", nil, "Hello.", planRequest{FirstStep: 1, Revision: 1}, nil},
		{"nothing", nil, "", fresh, []string{"steps, an answer, or says why"}},
		{"an answer and a step", []catalog.PlanStep{planned(1, names, nil, "outlets")}, "Hello.", fresh, []string{"has no steps"}},
		{"an answer after a failure", nil, "Hello.", planRequest{FirstStep: 1, Revision: 2}, []string{"at least one step"}},
		{"too many", many(11), "", fresh, []string{"there is room for"}},
		{"too many with those that are done", many(9), "", planRequest{FirstStep: 1, soFar: after.soFar}, []string{"there is room for 8"}},
		{"numbers that do not run on", []catalog.PlanStep{planned(1, names, []int{1})}, "", after, []string{"step 1: numbers must run on from 3"}},
		{"the same number twice", []catalog.PlanStep{planned(1, names, nil, "outlets"), planned(1, names, nil, "outlets")}, "", fresh, []string{"numbers must run on from 1"}},
		{"input of itself", []catalog.PlanStep{planned(1, names, []int{1})}, "", fresh, []string{"is no earlier step"}},
		{"input of a later step", []catalog.PlanStep{planned(1, names, []int{2}, "outlets"), planned(2, names, nil, "outlets")}, "", fresh, []string{"step 1: inputs: 2 is no earlier step"}},
		{"input of no step", []catalog.PlanStep{planned(1, names, []int{-1}, "outlets")}, "", fresh, []string{"is no earlier step"}},
		{"a skill that was not loaded", []catalog.PlanStep{planned(1, names, nil, "outlets", "weather")}, "", fresh, []string{`there is no skill "weather" now`}},
		{"neither skill nor input", []catalog.PlanStep{planned(1, "integer", nil)}, "", fresh, []string{"needs inputs"}},
		{"a shape that does not compile", []catalog.PlanStep{planned(1, "array<", nil, "outlets")}, "", fresh, []string{"return_spec.shape: "}},
		{"no shape", []catalog.PlanStep{planned(1, "", nil, "outlets")}, "", fresh, []string{"return_spec.shape: "}},
		{"members that nobody declares", []catalog.PlanStep{planned(1, "array<{price: number}>", nil, "outlets")}, "", fresh, []string{"nothing that the step can see declares"}},
		{"an agent", []catalog.PlanStep{{Step: 1, Agent: "shop", ReturnSpec: catalog.ReturnSpec{Shape: "string"}}}, "", fresh, nil},
		{"an agent that is not there", []catalog.PlanStep{{Step: 1, Agent: "shup", ReturnSpec: catalog.ReturnSpec{Shape: "string"}}}, "", fresh, []string{`there is no agent "shup"`}},
		{"an agent with skills, and no shape", []catalog.PlanStep{{Step: 1, Agent: "shop", Skills: []string{"outlets"}}}, "", fresh, []string{"not both", "return_spec.shape: "}},
		{"two things at once", []catalog.PlanStep{planned(2, "array<", nil, "weather")}, "", fresh, []string{"numbers must run on", "there is no skill", "return_spec.shape: "}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := verifyPlan(planArgs{Steps: tt.steps, Answer: tt.answer}, tt.req, known, []catalog.OtherAgent{{Agent: "shop"}})
			if len(got) != len(tt.says) {
				t.Fatalf("%q, want %q", got, tt.says)
			}
			for i, want := range tt.says {
				if !strings.Contains(got[i], want) {
					t.Errorf("%q does not say %q", got[i], want)
				}
			}
		})
	}
}

func TestMeetable(t *testing.T) {
	tests := []struct {
		name, shape, input string
		skills             []string
		want               bool
	}{
		{"a declared member", "array<{name: string, other: string}>", "", []string{"outlets"}, true},
		{"a declared title", "array<{Outlet: string}>", "", []string{"outlets"}, true},
		{"a member of the input", "array<{active: boolean}>", "", []string{"outlets"}, true},
		{"none", "array<{price: number}>", "", []string{"outlets"}, false},
		{"none of it deep inside", "{a: {b: array<{price: number}>}}", "", []string{"outlets"}, false},
		{"one deep inside", "{a: {b: array<{name: string}>}}", "", []string{"outlets"}, true},
		{"a scalar", "integer", "", []string{"outlets"}, true},
		{"an aggregate", "{count: integer}", "", []string{"outlets"}, true},
		{"a skill that declares no output", "{price: number}", "", []string{"outlets", "mute"}, true},
		{"an output without members", "{price: number}", "", []string{"empty"}, true},
		{"a skill that the step may not call", "{price: number}", "array<{name: string}>", []string{}, false},
		{"the earlier step's shape", "{name: string}", "array<{name: string}>", nil, true},
		{"not in the earlier step's shape", "{price: number}", "array<{name: string}>", nil, false},
		{"an earlier step that is a number", "{price: number}", "integer", nil, true},
	}
	for _, tt := range tests {
		req := planRequest{FirstStep: 1}
		step := planned(1, tt.shape, nil, tt.skills...)
		if tt.input != "" {
			req = planRequest{FirstStep: 2, soFar: soFar{Completed: []stepResult{{Step: catalog.PlanStep{Step: 1, ReturnSpec: catalog.ReturnSpec{Shape: tt.input}}}}}}
			step.Step, step.Inputs = 2, []int{1}
		}
		if got := verifyPlan(planArgs{Steps: []catalog.PlanStep{step}}, req, known, nil); (len(got) == 0) != tt.want {
			t.Errorf("%s: %q", tt.name, got)
		}
	}
}

// A step that waits can be dropped, and then no longer counts.
func TestVerifyDrop(t *testing.T) {
	waits := catalog.PlanStep{Step: 1, ReturnSpec: catalog.ReturnSpec{Shape: "integer"}}
	req := planRequest{FirstStep: 2, Revision: 2, soFar: soFar{Waiting: []catalog.PlanStep{waits}}}
	next := planned(2, "integer", []int{1}, "outlets")
	for _, tt := range []struct {
		drop []int
		says string
	}{{nil, ""}, {[]int{1}, "step 2: inputs: 1 is no earlier step"}, {[]int{3}, "drop: 3 is not among the steps that wait"}} {
		if got := strings.Join(verifyPlan(planArgs{Steps: []catalog.PlanStep{next}, Drop: tt.drop}, req, known, nil), "; "); got != tt.says {
			t.Errorf("drop %v: %q, want %q", tt.drop, got, tt.says)
		}
	}
	if len(req.Waiting) != 1 {
		t.Error("the request has changed")
	}
}
