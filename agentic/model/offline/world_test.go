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

	gocmp "github.com/google/go-cmp/cmp"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/schemas"
)

// world is a set of skills in memory, with the environment of a model that a turn needs: it plays
// the loop, the skill servers and the sandbox.
type world []tool

type tool struct {
	skill
	run func(json.RawMessage) (json.RawMessage, error)
}

// outcome is the result of a turn.
type outcome struct {
	selected []string
	plan     planOutput
	results  []stepResult
	scripts  []string
	failed   *lack
	answer   string
	partial  bool // there was no python3 to run a script with
}

// block is a part of the message that a request begins with.
type block struct {
	name  string
	value any
}

// talk is a conversation with the model.
type talk struct {
	t   testing.TB
	req model.Request
}

// begin creates a request as the loop does.
func begin(t testing.TB, agent string, tools []model.Tool, task string, blocks ...block) *talk {
	t.Helper()
	var text strings.Builder
	for _, b := range blocks {
		raw, err := json.Marshal(b.value)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&text, "[%s]\n%s\n\n", b.name, raw)
	}
	system := "Answer with calls.\n- These change data, and may wait for approval: "
	for _, o := range tools {
		if !o.Pure {
			system += "`" + o.Name + "`, "
		}
	}
	return &talk{t, model.Request{
		Agent: agent, System: system, Tools: tools,
		Messages: []model.Message{
			{Role: model.RoleSystem, Text: "[Context]\nDate: 2026-03-01\nAgent: " + agent + "\n"},
			{Role: model.RoleUser, Text: text.String() + "[Task]\n" + task},
		},
	}}
}

// next returns the model's next reply, which is one text or one call of an offered tool.
func (k *talk) next() (text string, call model.Call) {
	k.t.Helper()
	streamed := []model.Event{}
	r, err := Model{}.Respond(k.t.Context(), k.req, func(e model.Event) { streamed = append(streamed, e) })
	if err != nil {
		k.t.Fatal(err)
	}
	if r.Usage != (model.Usage{}) || r.Model != (Model{}).Name() || len(r.Calls) > 1 || (r.Text == "") != (len(r.Calls) == 1) {
		k.t.Fatalf("%+v", r)
	}
	k.req.Messages = append(k.req.Messages, model.Message{Role: model.RoleAssistant, Text: r.Text, Calls: r.Calls})
	if len(r.Calls) == 0 {
		if d := gocmp.Diff([]model.Event{{Text: r.Text}}, streamed); d != "" {
			k.t.Errorf("streamed (-want +got):\n%s", d)
		}
		return r.Text, call
	}
	call = r.Calls[0]
	if len(streamed) > 0 || !strings.HasPrefix(call.Arguments, "{") || !slices.ContainsFunc(k.req.Tools, func(o model.Tool) bool { return o.Name == call.Name }) {
		k.t.Fatalf("%v %+v", streamed, call)
	}
	return "", call
}

// call returns the next reply, a call.
func (k *talk) call() model.Call {
	k.t.Helper()
	text, call := k.next()
	if call.Name == "" {
		k.t.Fatalf("no call, but %q", text)
	}
	return call
}

// answer adds the result of the last call.
func (k *talk) answer(result any) {
	k.t.Helper()
	raw, err := json.Marshal(result)
	if err != nil {
		k.t.Fatal(err)
	}
	last := k.req.Messages[len(k.req.Messages)-1]
	k.req.Messages = append(k.req.Messages, model.Message{Role: model.RoleTool, CallID: last.Calls[0].ID, Text: string(raw)})
}

// argumentsOf decodes the arguments of a call.
func argumentsOf[T any](t testing.TB, call model.Call) (out T) {
	t.Helper()
	if err := json.Unmarshal([]byte(call.Arguments), &out); err != nil {
		t.Fatalf("%s: %v", call.Arguments, err)
	}
	return out
}

func toolNamed(name string) model.Tool {
	return model.Tool{Name: name, Schema: json.RawMessage(`{"type":"object"}`)}
}

var plannerTools = []model.Tool{toolNamed("find_relevant_skills"), toolNamed("load_skill"), toolNamed("plan")}

// executorTools are the skills of a step and the tools that every step has.
func executorTools(skills []skill) []model.Tool {
	var out []model.Tool
	for _, s := range skills {
		out = append(out, model.Tool{Name: strings.ReplaceAll(s.Name, ".", "_"), Description: s.Description, Schema: s.InputSchema, Pure: !s.Changes})
	}
	return append(out, toolNamed("read_lines"), toolNamed("exec_python"), toolNamed("write_memory"), toolNamed("insufficient"))
}

// generalTools are the same for an agent that answers in words.
func generalTools(skills []skill) []model.Tool {
	return slices.DeleteFunc(executorTools(skills), func(t model.Tool) bool { return t.Name == "insufficient" })
}

func (w world) find(name string) (tool, bool) {
	i := slices.IndexFunc(w, func(t tool) bool { return t.Name == name })
	if i < 0 {
		return tool{}, false
	}
	return w[i], true
}

func (w world) skills(names []string) []skill {
	out := []skill{}
	for _, n := range names {
		if s, ok := w.find(n); ok {
			out = append(out, s.skill)
		}
	}
	return out
}

// planner begins planning with the skills of w as candidates. more describes a failed plan before
// it.
func (w world) planner(t testing.TB, task string, more ...block) *talk {
	t.Helper()
	candidates := []map[string]string{}
	for _, s := range w {
		candidates = append(candidates, map[string]string{"name": s.Name, "description": s.Description})
	}
	limits := block{"Limits", map[string]int{"first_step": 1, "max_steps": 10}}
	return begin(t, "planner", plannerTools, task, append(append([]block{{"Skills", candidates}}, more...), limits)...)
}

// planned loads the skills that the model requests, until there is a plan.
func (w world) planned(k *talk) (selected []string, out planOutput) {
	k.t.Helper()
	selected = []string{}
	call := k.call()
	if call.Name == "load_skill" {
		selected = argumentsOf[struct{ Skills []string }](k.t, call).Skills
		k.answer(map[string]any{"skills": w.skills(selected), "unavailable": []string{}})
		call = k.call()
	}
	if call.Name != "plan" {
		k.t.Fatalf("%+v", call)
	}
	out = argumentsOf[planOutput](k.t, call)
	if (len(out.Steps) == 0) == (out.Infeasible == "") {
		k.t.Errorf("%+v", out)
	}
	return selected, out
}

// answerTo returns the composer's answer.
func answerTo(t testing.TB, task string, b block) string {
	t.Helper()
	text, _ := begin(t, "composer", nil, task, b).next()
	return text
}

// turn runs a whole task.
func (w world) turn(t testing.TB, task string) outcome {
	t.Helper()
	return w.from(t, w.planner(t, task), task)
}

// from executes the plan of a planner.
func (w world) from(t testing.TB, planner *talk, task string) (o outcome) {
	t.Helper()
	o.selected, o.plan = w.planned(planner)
	if o.plan.Infeasible != "" {
		o.answer = answerTo(t, task, block{"Failure", o.plan.Infeasible})
		return o
	}
	for _, s := range o.plan.Steps {
		if !w.step(t, &o, task, s) {
			return o
		}
	}
	o.answer = answerTo(t, task, block{"Results", o.results})
	return o
}

// large is the size in bytes from which a result is shown as a sample.
const large = 50000

// largest bounds the output of a script, in bytes.
const largest = 500_000

// shown returns a result as the model sees it.
func shown(label string, data json.RawMessage) map[string]any {
	if len(data) < large {
		return map[string]any{"label": label, "result": data}
	}
	return map[string]any{"label": label, "size_bytes": len(data), "sample": sampleOf(data), "format": "json"}
}

// executor begins a step.
func executor(t testing.TB, task, request string, skills []skill, schema json.RawMessage, more ...block) *talk {
	t.Helper()
	names := []string{}
	for _, s := range skills {
		names = append(names, s.Name)
	}
	var returns []map[string]any
	for _, s := range skills {
		if len(s.OutputSchema) > 0 {
			returns = append(returns, map[string]any{"tool": strings.ReplaceAll(s.Name, ".", "_"), "schema": s.OutputSchema})
		}
	}
	step := block{"Step", map[string]any{"step": 1, "task": task, "skills": names, "return_schema": schema}}
	return begin(t, "executor", executorTools(skills), task, append([]block{{"Request", request}, {"Returns", returns}, step}, more...)...)
}

// step runs one step; false ends the turn.
func (w world) step(t testing.TB, o *outcome, task string, s catalog.PlanStep) bool {
	t.Helper()
	schema := compile(t, s.ReturnSpec.Shape)
	data := map[string]json.RawMessage{}
	var input []block
	for _, r := range o.results {
		if slices.Contains(s.Inputs, r.Step.Step) {
			data["r0"] = r.Result
			input = append(input, block{"Input", shown("r0", r.Result)})
		}
	}
	k := executor(t, s.Task, task, w.skills(s.Skills), schema, input...)
	for n := range 6 {
		call, label := k.call(), fmt.Sprintf("r%d", n+1)
		args := argumentsOf[struct{ From, Script string }](t, call)
		switch call.Name {
		case "exec_python":
			o.scripts = append(o.scripts, args.Script)
			out, err := python(t, args.Script, data[args.From])
			if errors.Is(err, exec.ErrNotFound) {
				o.partial = true
				return false
			}
			if err != nil {
				t.Fatalf("%v\n%s", err, args.Script)
			}
			if len(out) > largest {
				k.answer(map[string]any{"error": map[string]string{"code": "OVERSIZED_OUTPUT", "reason": "the script printed more than 500,000 bytes: print less"}})
				continue
			}
			data[label] = out
		case "write_memory":
			if !fits(t, schema, data[args.From]) {
				t.Errorf("step %d: %s does not fit %s", s.Step, data[args.From], s.ReturnSpec.Shape)
			}
			o.results = append(o.results, stepResult{Step: s, Result: data[args.From]})
			return true
		case "insufficient":
			why := argumentsOf[lack](t, call)
			o.failed = &why
			return false
		default:
			called, _ := w.find(call.Name)
			out, err := called.run(json.RawMessage(call.Arguments))
			if err != nil {
				k.answer(failure(err.Error()))
				continue
			}
			data[label] = out
		}
		k.answer(shown(label, data[label]))
	}
	t.Errorf("step %d never ended", s.Step)
	return false
}

// failure is the result of a failed call.
func failure(reason string) any {
	return map[string]any{"error": map[string]string{"code": "EXECUTOR_FAILED", "reason": reason}}
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

// compile returns the schema of a return_spec.
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
		{skill{
			Name:        "earthquake_feed",
			Description: "All earthquakes of one week, worldwide, as the USGS published them: for each its magnitude (how strong it was), place, time, depth and more. Takes no input and returns the whole feed.",
			InputSchema: json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`), OutputSchema: readFile(t, "feed_output.json"),
		}, func(json.RawMessage) (json.RawMessage, error) { return feed, nil }},
		{skill{
			Name:        "rank",
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
