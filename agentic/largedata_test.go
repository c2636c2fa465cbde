package agentic

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// large has the core answer skill.call with a file of the step.
func large(c *core, lines ...string) {
	working(c)
	c.on("skill.call", done(catalog.SkillCallResult{Reference: &catalog.Reference{FileID: "f1", SizeBytes: 1 << 20, SHA256: strings.Repeat("0", 64), Sample: lines}}))
	c.on("read_lines", done(catalog.ReadLinesResult{Lines: lines, More: true}))
}

// printed is what a script printed.
func printed(text string) func(placed) *intents.Answer {
	return done(catalog.ExecPythonResult{Output: json.RawMessage(text)})
}

// worked runs task_1 with a model that calls and then extracts.
func worked(t *testing.T, c *core, scripts ...any) (runReply, *script) {
	t.Helper()
	m := says(map[model.Purpose][]any{model.ChooseAction: {callIt, model.ActionOutput{Action: model.ActExtract, Input: json.RawMessage(`{}`)}}, model.WriteScript: scripts})
	w := tasks(c, m)
	return w.run(t.Context(), opened(c, w, time.Now().Add(time.Minute))), m
}

func scriptInput(t *testing.T, m *script, n int) model.ScriptInput {
	t.Helper()
	all := m.inputs(model.WriteScript)
	if len(all) <= n {
		t.Fatalf("%d scripts were asked for", len(all))
	}
	var in model.ScriptInput
	if err := json.Unmarshal(all[n], &in); err != nil {
		t.Fatal(err)
	}
	return in
}

// TestLarge: sample, script, run, check; what is stored is the order's result,
// and the data itself never reaches the model.
func TestLarge(t *testing.T) {
	c := newCore(t)
	large(c, `{"name":"a"}`, `{"name":"b"}`)
	c.on("exec_python", printed(`{"count":10}`))
	got, m := worked(t, c, model.ScriptOutput{Script: "print(10)"})
	if got.Status != taskDone || got.Plan == nil || finish(c).MemoryKey != taskKey {
		t.Fatalf("%+v", got)
	}
	want := []string{"skill.load", "skill.call", "read_lines", "exec_python", "write_memory", "step.finish"}
	if d := cmp.Diff(want, types(c.taken())); d != "" {
		t.Errorf("orders (-want +got):\n%s", d)
	}
	var ran catalog.ExecPython
	if err := json.Unmarshal(c.of("exec_python")[0].Args, &ran); err != nil || ran.From != "f1" || ran.Script != "print(10)" {
		t.Errorf("%+v, error %v", ran, err)
	}
	var wrote catalog.WriteMemory
	if err := json.Unmarshal(c.of("write_memory")[0].Args, &wrote); err != nil || wrote.From != c.of("exec_python")[0].ID {
		t.Errorf("%+v, error %v", wrote, err)
	}
	in := scriptInput(t, m, 0)
	if d := cmp.Diff([]string{`{"name":"a"}`, `{"name":"b"}`}, in.Sample); d != "" || in.Format != "jsonl" {
		t.Errorf("format %s, sample (-want +got):\n%s", in.Format, d)
	}
}

// TestLargeScripts: a script that fails, or gives what return_spec does not say,
// is written anew; the model is told what was wrong.
func TestLargeScripts(t *testing.T) {
	c := newCore(t)
	large(c, "[", `{"name":"a"}`)
	fault := func(p placed) *intents.Answer {
		a := outcome(intents.ExecutorFailed, intents.Failed, false)(p)
		a.Outcome.Result = json.RawMessage(`{"error":"ValueError: no"}`)
		return a
	}
	c.on("exec_python", inTurn(fault, printed(`{"count":"ten"}`), printed(`{"count":10}`)))
	got, m := worked(t, c, model.ScriptOutput{Script: "raise"}, model.ScriptOutput{Script: "print('ten')"}, model.ScriptOutput{Script: "print(10)"})
	if got.Status != taskDone {
		t.Fatalf("%+v", got)
	}
	if in := scriptInput(t, m, 0); in.Error != "" || in.Format != "json" {
		t.Errorf("first: error %q, format %s", in.Error, in.Format)
	}
	if in := scriptInput(t, m, 1); !strings.Contains(in.Error, "EXECUTOR_FAILED") || !strings.Contains(in.Error, "ValueError: no") {
		t.Errorf("after a fault: %q", in.Error)
	}
	if in := scriptInput(t, m, 2); !strings.Contains(in.Error, "return_spec") || !strings.Contains(in.Error, "/count") {
		t.Errorf("after a wrong result: %q", in.Error)
	}
}

// TestLargeGivesUp: after three scripts the step says so.
func TestLargeGivesUp(t *testing.T) {
	c := newCore(t)
	large(c, "x")
	c.on("exec_python", printed(`"ten"`))
	got, m := worked(t, c, model.ScriptOutput{Script: "print('ten')"})
	if got.Status != taskInsufficient || !strings.Contains(got.Reason, "no script gave the result") || got.Plan == nil {
		t.Errorf("%+v", got)
	}
	if n := len(m.inputs(model.WriteScript)); n != maxScripts || len(c.of("exec_python")) != maxScripts {
		t.Errorf("%d scripts written, %d run", n, len(c.of("exec_python")))
	}
	if n := len(c.of("write_memory")); n != 0 {
		t.Errorf("%d results were stored", n)
	}
}

// TestLargeNotTheScript: what is no fault of the script ends the step.
func TestLargeNotTheScript(t *testing.T) {
	c := newCore(t)
	large(c, "x")
	c.on("exec_python", refuse(intents.PolicyDenied, "no scripts here"))
	got, m := worked(t, c, model.ScriptOutput{Script: "print(10)"})
	if got.Status != taskFailed || got.Reason != "no scripts here (exec_python)" || len(m.inputs(model.WriteScript)) != 1 {
		t.Errorf("%+v", got)
	}
}

// TestInlineWrongShape: small data that does not fit is worked on as well, by
// the order that brought it.
func TestInlineWrongShape(t *testing.T) {
	c := newCore(t)
	working(c)
	c.on("skill.call", done(catalog.SkillCallResult{Output: json.RawMessage(`[{"name":"a"}]`)}))
	c.on("exec_python", printed(`{"count":1}`))
	m := says(map[model.Purpose][]any{model.ChooseAction: {callIt, finishIt}, model.WriteScript: {model.ScriptOutput{Script: "print(1)"}}})
	w := tasks(c, m)
	if got := w.run(t.Context(), opened(c, w, time.Now().Add(time.Minute))); got.Status != taskDone {
		t.Fatalf("%+v", got)
	}
	var ran catalog.ExecPython
	if err := json.Unmarshal(c.of("exec_python")[0].Args, &ran); err != nil || ran.From != c.of("skill.call")[0].ID {
		t.Errorf("%+v, error %v", ran, err)
	}
	if in := scriptInput(t, m, 0); len(in.Sample) != 1 || in.Sample[0] != `[{"name":"a"}]` {
		t.Errorf("sample %q", in.Sample)
	}
}

// TestCallRefused: why a call did not work is told to the model, which may try
// something else; what is not about the call ends the step.
func TestCallRefused(t *testing.T) {
	c := newCore(t)
	working(c)
	c.on("skill.call", inTurn(refuse(intents.PolicyDenied, "not these outlets"), done(catalog.SkillCallResult{Output: json.RawMessage(`{"count":10}`)})))
	m := says(map[model.Purpose][]any{model.ChooseAction: {callIt, callIt, finishIt}})
	w := tasks(c, m)
	if got := w.run(t.Context(), opened(c, w, time.Now().Add(time.Minute))); got.Status != taskDone {
		t.Fatalf("%+v", got)
	}
	var in model.ActionInput
	if err := json.Unmarshal(m.inputs(model.ChooseAction)[1], &in); err != nil || len(in.Calls) != 1 || !strings.Contains(in.Calls[0].Error, "not these outlets") {
		t.Errorf("the model was told %+v, error %v", in.Calls, err)
	}

	c.on("skill.call", refuse(intents.KeyRevoked, "cancelled"))
	w = tasks(c, says(map[model.Purpose][]any{model.ChooseAction: {callIt}}))
	if got := w.run(t.Context(), opened(c, w, time.Now().Add(time.Minute))); got.Status != taskFailed || got.Reason != "cancelled (skill.call)" {
		t.Errorf("%+v", got)
	}
}
