package model

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
)

// world is a set of skills in memory, with everything around a model that a
// turn needs: it plays planner, manager, task and sandbox.
type world []tool

type tool struct {
	Skill
	run func(json.RawMessage) (json.RawMessage, error)
}

// outcome is what a turn came to.
type outcome struct {
	selected []string
	plan     PlanOutput
	results  []StepResult
	scripts  []string
	failed   *ActionOutput
	answer   string
	partial  bool // there was no python3 to run a script with
}

// ask puts a question as the agents do: the output must satisfy its schema.
func ask[I, O any](t testing.TB, purpose Purpose, in I) O {
	t.Helper()
	out, _, err := Think[I, O](t.Context(), Offline{}, purpose, "", in)
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

func (w world) skills(names []string) []Skill {
	out := []Skill{}
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
	var in SelectInput
	in.Task = task
	for _, s := range w {
		in.Candidates = append(in.Candidates, Candidate{s.Name, s.Description})
	}
	o.selected = ask[SelectInput, SelectOutput](t, SelectSkills, in).Skills
	o.plan = ask[PlanInput, PlanOutput](t, WritePlan, PlanInput{Task: task, Skills: w.skills(o.selected), FirstStep: 1, MaxSteps: 10})
	if !o.plan.Feasible {
		o.answer = ask[ComposeInput, ComposeOutput](t, Compose, ComposeInput{Task: task, Failure: o.plan.Reason}).Response
		return o
	}
	for _, s := range o.plan.Steps {
		if !w.step(t, &o, task, s) {
			return o
		}
	}
	o.answer = ask[ComposeInput, ComposeOutput](t, Compose, ComposeInput{Task: task, Results: o.results}).Response
	return o
}

// step runs one step; false ends the turn.
func (w world) step(t testing.TB, o *outcome, task string, s Step) bool {
	t.Helper()
	in := ActionInput{Task: s.Task, UserTask: task, Step: s.Step, Skills: w.skills(s.Skills), ReturnSpec: s.ReturnSpec, Schema: compile(t, s.ReturnSpec.Shape)}
	for _, r := range o.results {
		if s.InputFromStep > 0 && r.Step.Step == s.InputFromStep {
			in.Input = r.Result
		}
	}
	data, schema := in.Input, json.RawMessage(nil)
	for range 4 {
		act := ask[ActionInput, ActionOutput](t, ChooseAction, in)
		var result json.RawMessage
		switch act.Action {
		case ActCall:
			var c CallResult
			c, data = w.call(act)
			in.Calls = append(in.Calls, c)
			k, _ := w.find(act.Skill)
			schema = k.OutputSchema
			continue
		case ActExtract:
			out, ok := extracted(t, o, in, data, schema)
			if !ok {
				o.partial = true
				return false
			}
			result = out
		case ActFinish:
			result = data
		default:
			o.failed = &act
			return false
		}
		if !fits(readSchema(in.Schema), result) {
			t.Errorf("step %d: %s does not fit %s", s.Step, result, s.ReturnSpec.Shape)
		}
		o.results = append(o.results, StepResult{Step: s, Result: result})
		return true
	}
	t.Errorf("step %d never ended", s.Step)
	return false
}

func (w world) call(act ActionOutput) (CallResult, json.RawMessage) {
	c := CallResult{Skill: act.Skill, Input: act.Input}
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

func extracted(t testing.TB, o *outcome, in ActionInput, data, schema json.RawMessage) (json.RawMessage, bool) {
	t.Helper()
	si := ScriptInput{Task: in.Task, UserTask: in.UserTask, ReturnSpec: in.ReturnSpec, Schema: in.Schema, Format: "json", DataSchema: schema, Sample: sampleOf(data)}
	script := ask[ScriptInput, ScriptOutput](t, WriteScript, si).Script
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

// compile is a small reader of return_spec shapes, independent of the real one.
func compile(t testing.TB, shape string) json.RawMessage {
	t.Helper()
	c := &shapeReader{t: t, s: shape}
	out := c.read()
	if c.s != "" {
		t.Fatalf("shape %q: %q is left over", shape, c.s)
	}
	raw, _ := json.Marshal(out)
	return raw
}

type shapeReader struct {
	t testing.TB
	s string
}

func (c *shapeReader) eat(token string) bool {
	c.s = strings.TrimSpace(c.s)
	rest, ok := strings.CutPrefix(c.s, token)
	if ok {
		c.s = rest
	}
	return ok
}

func (c *shapeReader) read() map[string]any {
	c.t.Helper()
	switch {
	case c.eat("array<"):
		items := c.read()
		if !c.eat(">") {
			c.t.Fatalf("shape: no > before %q", c.s)
		}
		return map[string]any{"type": "array", "items": items}
	case c.eat("{"):
		return c.object()
	}
	for _, name := range []string{"string", "number", "integer", "boolean"} {
		if c.eat(name) {
			return map[string]any{"type": name}
		}
	}
	c.t.Fatalf("shape: unknown type at %q", c.s)
	return nil
}

func (c *shapeReader) object() map[string]any {
	c.t.Helper()
	props, required := map[string]any{}, []string{}
	for !c.eat("}") {
		c.eat(",")
		c.s = strings.TrimSpace(c.s)
		n := strings.IndexAny(c.s, ":,} ")
		if n <= 0 {
			c.t.Fatalf("shape: no member at %q", c.s)
		}
		name := c.s[:n]
		c.s = c.s[n:]
		props[name] = map[string]any{}
		if c.eat(":") {
			props[name] = c.read()
		}
		required = append(required, name)
	}
	return map[string]any{"type": "object", "properties": props, "required": required, "additionalProperties": false}
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
		{Skill{
			Name: "earthquake_feed", Effect: "pure",
			Description: "All earthquakes of one week, worldwide, as the USGS published them: for each its magnitude (how strong it was), place, time, depth and more. Takes no input and returns the whole feed.",
			InputSchema: json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`), OutputSchema: readFile(t, "feed_output.json"),
		}, func(json.RawMessage) (json.RawMessage, error) { return feed, nil }},
		{Skill{
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
