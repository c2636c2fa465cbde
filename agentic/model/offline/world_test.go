package offline

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/schemas"
)

// world is a set of skills in memory, with everything around a model that a
// turn needs: it plays planner, manager, task and sandbox.
type world []tool

type tool struct {
	model.Skill
	run func(json.RawMessage) (json.RawMessage, error)
}

// outcome is what a turn came to.
type outcome struct {
	selected []string
	plan     model.PlanOutput
	results  []model.StepResult
	scripts  []string
	failed   *model.ActionOutput
	answer   string
	partial  bool // there was no python3 to run a script with
}

// ask puts a question as the agents do: the output must satisfy its schema.
func ask[I, O any](t testing.TB, purpose model.Purpose, in I) O {
	t.Helper()
	out, _, err := model.Think[I, O](t.Context(), Model{}, purpose, "", in)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (w world) find(name string) (tool, bool) {
	i := slices.IndexFunc(w, func(t tool) bool { return t.Name == name })
	if i < 0 {
		return tool{}, false
	}
	return w[i], true
}

func (w world) skills(names []string) []model.Skill {
	out := []model.Skill{}
	for _, n := range names {
		if s, ok := w.find(n); ok {
			out = append(out, s.Skill)
		}
	}
	return out
}

// turn runs a whole task.
func (w world) turn(t testing.TB, task string) outcome {
	t.Helper()
	var o outcome
	var in model.SelectInput
	in.Task = task
	for _, s := range w {
		in.Candidates = append(in.Candidates, model.Candidate{Name: s.Name, Description: s.Description})
	}
	o.selected = ask[model.SelectInput, model.SelectOutput](t, model.SelectSkills, in).Skills
	o.plan = ask[model.PlanInput, model.PlanOutput](t, model.WritePlan, model.PlanInput{Task: task, Skills: w.skills(o.selected), FirstStep: 1, MaxSteps: 10})
	if !o.plan.Feasible {
		o.answer = ask[model.ComposeInput, model.ComposeOutput](t, model.Compose, model.ComposeInput{Task: task, Failure: o.plan.Reason}).Response
		return o
	}
	for _, s := range o.plan.Steps {
		if !w.step(t, &o, task, s) {
			return o
		}
	}
	o.answer = ask[model.ComposeInput, model.ComposeOutput](t, model.Compose, model.ComposeInput{Task: task, Results: o.results}).Response
	return o
}

// step runs one step; false ends the turn.
func (w world) step(t testing.TB, o *outcome, task string, s model.Step) bool {
	t.Helper()
	in := model.ActionInput{Task: s.Task, UserTask: task, Step: s.Step, Skills: w.skills(s.Skills), ReturnSpec: s.ReturnSpec, Schema: compile(t, s.ReturnSpec.Shape)}
	for _, r := range o.results {
		if s.InputFromStep > 0 && r.Step.Step == s.InputFromStep {
			in.Input = r.Result
		}
	}
	data, schema := in.Input, json.RawMessage(nil)
	for range 4 {
		act := ask[model.ActionInput, model.ActionOutput](t, model.ChooseAction, in)
		var result json.RawMessage
		switch act.Action {
		case model.ActCall:
			var c model.CallResult
			c, data = w.call(act)
			in.Calls = append(in.Calls, c)
			k, _ := w.find(act.Skill)
			schema = k.OutputSchema
			continue
		case model.ActExtract:
			out, ok := extracted(t, o, in, data, schema)
			if !ok {
				o.partial = true
				return false
			}
			result = out
		case model.ActFinish:
			result = data
		default:
			o.failed = &act
			return false
		}
		if !fits(t, in.Schema, result) {
			t.Errorf("step %d: %s does not fit %s", s.Step, result, s.ReturnSpec.Shape)
		}
		o.results = append(o.results, model.StepResult{Step: s, Result: result})
		return true
	}
	t.Errorf("step %d never ended", s.Step)
	return false
}

func (w world) call(act model.ActionOutput) (model.CallResult, json.RawMessage) {
	c := model.CallResult{Skill: act.Skill, Input: act.Input}
	s, ok := w.find(act.Skill)
	if !ok {
		c.Error = "there is no such skill"
		return c, nil
	}
	out, err := s.run(act.Input)
	if err != nil {
		c.Error = err.Error()
		return c, nil
	}
	if c.SizeBytes = int64(len(out)); len(out) >= 50000 {
		c.Large = true
	} else {
		c.Output = out
	}
	return c, out
}

func extracted(t testing.TB, o *outcome, in model.ActionInput, data, schema json.RawMessage) (json.RawMessage, bool) {
	t.Helper()
	si := model.ScriptInput{Task: in.Task, UserTask: in.UserTask, ReturnSpec: in.ReturnSpec, Schema: in.Schema, Format: "json", DataSchema: schema, Sample: sampleOf(data)}
	script := ask[model.ScriptInput, model.ScriptOutput](t, model.WriteScript, si).Script
	o.scripts = append(o.scripts, script)
	out, err := python(t, script, data)
	if errors.Is(err, exec.ErrNotFound) {
		return nil, false
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, script)
	}
	return out, true
}

func sampleOf(data []byte) []string {
	lines := strings.Split(string(data), "\n")
	lines = lines[:min(len(lines), 20)]
	for i, l := range lines {
		lines[i] = l[:min(len(l), 2048)]
	}
	return lines
}

// python runs a script as the sandbox does: input_file is set before it.
func python(t testing.TB, script string, data []byte) (json.RawMessage, error) {
	t.Helper()
	path, err := exec.LookPath("python3")
	if err != nil {
		return nil, exec.ErrNotFound
	}
	file := filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), path, "-I", "-c", fmt.Sprintf("input_file = %q\n%s", file, script))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, &stderr)
	}
	return bytes.TrimSpace(out), nil
}

// compile is the schema of a return_spec.
func compile(t testing.TB, shape string) json.RawMessage {
	t.Helper()
	raw, err := schemas.CompileShape(shape)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// fits checks a result against the schema of its step.
func fits(t testing.TB, schema, result json.RawMessage) bool {
	t.Helper()
	s, err := schemas.Compile(schema)
	if err != nil {
		t.Fatal(err)
	}
	return len(s.ValidateBytes(result)) == 0
}

func readFile(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	if z, err := gzip.NewReader(bytes.NewReader(b)); err == nil {
		if b, err = io.ReadAll(z); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// quakeWorld is the demo's domain: a large feed and a skill that ranks rows.
func quakeWorld(t testing.TB) world {
	t.Helper()
	feed := readFile(t, "earthquakes.json.gz")
	return world{
		{model.Skill{
			Name: "earthquake_feed", Effect: "pure",
			Description: "All earthquakes of one week, worldwide, as the USGS published them: for each its magnitude (how strong it was), place, time, depth and more. Takes no input and returns the whole feed.",
			InputSchema: json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`), OutputSchema: readFile(t, "feed_output.json"),
		}, func(json.RawMessage) (json.RawMessage, error) { return feed, nil }},
		{model.Skill{
			Name: "rank", Effect: "pure",
			Description: "Ranks rows by one of their members, largest first unless told otherwise: the strongest, highest, longest, newest or most expensive of anything. Returns the same rows in order, each with its rank.",
			InputSchema: readFile(t, "rank_input.json"), OutputSchema: readFile(t, "rank_output.json"),
		}, rankRows},
	}
}

func rankRows(in json.RawMessage) (json.RawMessage, error) {
	var args struct {
		Rows       []map[string]any `json:"rows"`
		By         string           `json:"by"`
		Descending *bool            `json:"descending"`
	}
	if err := json.Unmarshal(in, &args); err != nil || args.By == "" {
		return nil, fmt.Errorf("rank: bad input %s", in)
	}
	sign := -1
	if args.Descending != nil && !*args.Descending {
		sign = 1
	}
	slices.SortStableFunc(args.Rows, func(a, b map[string]any) int {
		x, _ := a[args.By].(float64)
		y, _ := b[args.By].(float64)
		return sign * cmp.Compare(x, y)
	})
	for i, r := range args.Rows {
		r["rank"] = i + 1
	}
	return json.Marshal(map[string]any{"rows": args.Rows})
}
