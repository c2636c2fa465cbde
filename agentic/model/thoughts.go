package model

import (
	"encoding/json"

	"aob.dev/writ/intents/catalog"
)

// Skill is a manifest as a model sees it: what the skill server declared,
// loaded by a skill.load order. Schemas are JSON Schema.
type Skill struct {
	Name         string          `json:"name"`
	Description  string          `json:"description"`
	InputSchema  json.RawMessage `json:"input_schema"`
	OutputSchema json.RawMessage `json:"output_schema,omitempty"`
	Effect       string          `json:"effect"` // pure, idempotent, once: as the approved pin says
}

// Candidate is one hit of skill.find.
type Candidate struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

// SelectInput asks which of the candidates are worth loading, best first.
type SelectInput struct {
	Task       string      `json:"task"`
	Candidates []Candidate `json:"candidates"`
}

// SelectOutput names at most six candidates; empty means that none fits.
type SelectOutput struct {
	Skills []string `json:"skills"`
}

// ReturnSpec is the hard contract of a step's result. Shape is
// the shorthand of schemas.CompileShape, such as array<{place: string, magnitude: number}>.
type ReturnSpec = catalog.ReturnSpec

// Step is one step of a plan. Skills may be empty: then the step works
// on the result of InputFromStep alone, with exec_python.
type Step = catalog.PlanStep

// CompletedStep is a step whose result stays valid across a replan, with its
// result when it is small (below 4 KiB), else a sample of it.
type CompletedStep struct {
	Step   Step            `json:"step"`
	Result json.RawMessage `json:"result,omitempty"`
}

// FailedStep says why a replan is needed.
type FailedStep struct {
	Step       Step            `json:"step"`
	Trigger    string          `json:"trigger"` // contract_violation, insufficient, failed, rejected, interrupted
	Reason     string          `json:"reason"`
	Suggestion string          `json:"suggestion,omitempty"`
	Facts      json.RawMessage `json:"facts,omitempty"` // orders with effects and their outcomes, for interrupted steps
}

// PlanInput asks for a plan of at most MaxSteps steps numbered from FirstStep,
// or, after a failure, for the steps that replace the failed and remaining ones.
type PlanInput struct {
	Task      string          `json:"task"`
	Skills    []Skill         `json:"skills"`
	FirstStep int             `json:"first_step"`
	MaxSteps  int             `json:"max_steps"`
	Completed []CompletedStep `json:"completed_steps,omitempty"`
	Failed    *FailedStep     `json:"failed_step,omitempty"`
	Remaining []Step          `json:"remaining_steps,omitempty"`
	// Violations are what was wrong with the model's previous answer to this
	// question (a shape that the skill's output schema cannot meet, say).
	Violations []string `json:"violations,omitempty"`
}

// PlanOutput is a plan, or Feasible false with the reason.
type PlanOutput struct {
	Feasible bool   `json:"feasible"`
	Reason   string `json:"reason"`
	Steps    []Step `json:"steps"`
}

// ActionInput asks a task what to do next for its step. Input is the result of
// the step named by input_from_step (inline, or a sample when it is large);
// Calls are the skill calls that this task made already.
type ActionInput struct {
	Task       string          `json:"task"`
	UserTask   string          `json:"user_task"`
	Step       int             `json:"step"`
	Skills     []Skill         `json:"skills"`
	ReturnSpec ReturnSpec      `json:"return_spec"`
	Schema     json.RawMessage `json:"return_schema"` // ReturnSpec.Shape compiled
	Input      json.RawMessage `json:"input,omitempty"`
	Calls      []CallResult    `json:"calls,omitempty"`
	Violations []string        `json:"violations,omitempty"`
}

// CallResult is one skill call and what came back: Output inline, or Sample of
// a large response (its first lines) with its size.
type CallResult struct {
	Skill     string          `json:"skill"`
	Input     json.RawMessage `json:"input"`
	Output    json.RawMessage `json:"output,omitempty"`
	Large     bool            `json:"large,omitempty"`
	SizeBytes int64           `json:"size_bytes,omitempty"`
	Error     string          `json:"error,omitempty"`
}

// Action is a closed set.
type Action string

// What a task can decide.
const (
	ActCall         Action = "call"         // call Skill with Input
	ActExtract      Action = "extract"      // write a script over the last call's output (or over the step's input)
	ActFinish       Action = "finish"       // the last call's output already is the result
	ActInsufficient Action = "insufficient" // cannot be done: Reason, Suggestion
)

// ActionOutput is the decision. Fields that the action does not use are empty.
type ActionOutput struct {
	Action     Action          `json:"action"`
	Skill      string          `json:"skill"`
	Input      json.RawMessage `json:"input"` // a JSON object
	Reason     string          `json:"reason"`
	Suggestion string          `json:"suggestion"`
}

// ScriptInput asks for a Python script that reads the file named by the
// variable input_file, prints one JSON document on standard output, and uses
// the standard library only. The file holds the data as received:
// Format is "json" (one document) or "jsonl" (one array element a line).
type ScriptInput struct {
	Task       string          `json:"task"`
	UserTask   string          `json:"user_task"`
	ReturnSpec ReturnSpec      `json:"return_spec"`
	Schema     json.RawMessage `json:"return_schema"`
	Format     string          `json:"format"`
	DataSchema json.RawMessage `json:"data_schema,omitempty"` // output schema of the skill, where declared
	Sample     []string        `json:"sample"`                // first lines, each cut at 2 KiB
	// Error is what the previous script ended with (traceback, oversized_output,
	// or a contract violation), so that the next one can do better.
	Error string `json:"error,omitempty"`
}

// ScriptOutput is the script.
type ScriptOutput struct {
	Script string `json:"script"`
}

// StepResult is the validated result of a step; of a Partial one, which is too
// large to show, Result is the first rows, and Rows how many there are in all,
// where that is known.
type StepResult struct {
	Step    Step            `json:"step"`
	Result  json.RawMessage `json:"result"`
	Partial bool            `json:"partial,omitempty"`
	Rows    int             `json:"rows,omitempty"`
}

// ComposeInput asks for the user's answer from the results of the steps.
// Failure is set instead of results when the plan failed.
type ComposeInput struct {
	Task    string       `json:"task"`
	Results []StepResult `json:"results"`
	Failure string       `json:"failure,omitempty"`
}

// ComposeOutput is the answer in plain language; it never holds codes or traces.
type ComposeOutput struct {
	Response string `json:"response"`
}
