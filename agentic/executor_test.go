package agentic

import (
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state/agents"
)

// large has the core answer skill.call with a file of the step.
func large(c *core, lines ...string) {
	working(c)
	c.on("skill.call", done(catalog.SkillCallResult{Reference: &catalog.Reference{FileID: "f1", SizeBytes: 1 << 20, SHA256: strings.Repeat("0", 64), Sample: lines}}))
}

// printed returns the output of a script.
func printed(text string) func(placed) *intents.Answer {
	return done(catalog.ExecPythonResult{Output: json.RawMessage(text)})
}

// worked runs task_1 with a model that gives these replies.
func worked(t *testing.T, c *core, replies ...any) (runReply, *script) {
	t.Helper()
	m := says(map[string][]any{agents.Executor: replies})
	w := tasks(c, m)
	return w.run(t.Context(), opened(c, w, time.Now().Add(time.Minute))), m
}

// overResult is a script over a result, and a call that writes its output as the step's result.
func overResult(label, script string) model.Call {
	return call("exec_python", execPythonArgs{Script: script, From: label})
}

func write(label string) model.Call { return call("write_memory", writeMemoryArgs{From: label}) }

// lastResults are the results in the last request of the executor.
func lastResults(t *testing.T, m *script) []string {
	t.Helper()
	all := m.requests(agents.Executor)
	if len(all) == 0 {
		t.Fatal("the executor was not asked")
	}
	return results(all[len(all)-1])
}

// TestLarge: a large result is shown by its first lines; a script reads it by its label; the
// stored value is the intent's result. The data itself never reaches the model.
func TestLarge(t *testing.T) {
	c := newCore(t)
	large(c, `{"name":"a"}`, `{"name":"b"}`)
	c.on("exec_python", printed(`{"count":10}`))
	got, m := worked(t, c, callIt, overResult("r1", "print(10)"), write("r2"))
	if got.Status != taskDone || got.Plan == nil || finish(c).MemoryKey != taskKey {
		t.Fatalf("%+v", got)
	}
	want := []string{"skill.load", "skill.call", "exec_python", "write_memory", "step.finish"}
	if d := cmp.Diff(want, types(c.allPlaced())); d != "" {
		t.Errorf("intents (-want +got):\n%s", d)
	}
	var ran catalog.ExecPython
	if err := json.Unmarshal(c.ofType("exec_python")[0].Args, &ran); err != nil || ran.From != "f1" || ran.Script != "print(10)" {
		t.Errorf("%+v, error %v", ran, err)
	}
	var wrote catalog.WriteMemory
	if err := json.Unmarshal(c.ofType("write_memory")[0].Args, &wrote); err != nil || wrote.From != c.ofType("exec_python")[0].ID {
		t.Errorf("%+v, error %v", wrote, err)
	}
	shows := []string{
		`{"label":"r1","size_bytes":1048576,"sample":["{\"name\":\"a\"}","{\"name\":\"b\"}"],"format":"jsonl","more":true}`,
		`{"label":"r2","result":{"count":10}}`,
	}
	if d := cmp.Diff(shows, lastResults(t, m)); d != "" {
		t.Errorf("the model was shown (-want +got):\n%s", d)
	}
}

// TestScriptsAreCorrected: a script that fails, or whose output violates return_spec, is
// rewritten; the model receives the error.
func TestScriptsAreCorrected(t *testing.T) {
	c := newCore(t)
	large(c, "[", `{"name":"a"}`)
	fault := func(p placed) *intents.Answer {
		a := outcome(intents.ExecutorFailed, intents.Failed, false)(p)
		a.Outcome.Result = json.RawMessage(`{"error":"ValueError: no"}`)
		return a
	}
	c.on("exec_python", inTurn(fault, outcome(intents.OversizedOutput, intents.Failed, false), printed(`{"count":"ten"}`), printed(`{"count":10}`)))
	got, m := worked(t, c, callIt, overResult("r1", "raise"), overResult("r1", "print(all)"), overResult("r1", "print('ten')"), write("r4"), overResult("r1", "print(10)"), write("r5"))
	if got.Status != taskDone {
		t.Fatalf("%+v", got)
	}
	said := lastResults(t, m)
	for i, want := range map[int]string{1: "ValueError: no", 2: "OVERSIZED_OUTPUT", 4: "/count: "} {
		if !strings.Contains(said[i], want) {
			t.Errorf("result %d does not say %q: %s", i, want, said[i])
		}
	}
	if !strings.Contains(said[0], `"format":"json"`) {
		t.Errorf("the file is shown as %s", said[0])
	}
	if n := len(c.ofType("write_memory")); n != 1 {
		t.Errorf("%d results were stored", n)
	}
	for i, o := range c.ofType("exec_python") {
		var args catalog.ExecPython
		if err := json.Unmarshal(o.Args, &args); err != nil || args.From != "f1" {
			t.Errorf("run %d: %+v, error %v", i, args, err)
		}
	}
}

// TestReadLines: more of a large result is read by its label.
func TestReadLines(t *testing.T) {
	c := newCore(t)
	large(c, "a")
	c.on("read_lines", done(catalog.ReadLinesResult{Lines: []string{"b", "c"}, More: true}))
	_, m := worked(t, c, callIt, call("read_lines", readLinesArgs{"r1", 20, 2}), giveUp)
	if d := cmp.Diff(`{"lines":["b","c"],"more":true}`, lastResults(t, m)[1]); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	var lines catalog.ReadLines
	if err := json.Unmarshal(c.ofType("read_lines")[0].Args, &lines); err != nil || lines != (catalog.ReadLines{FileID: "f1", Start: 20, N: 2}) {
		t.Errorf("%+v, error %v", lines, err)
	}
}

// TestMistakes: the model receives the error of a call that cannot be executed, and nothing is
// signed.
func TestMistakes(t *testing.T) {
	for name, tt := range map[string]struct {
		call model.Call
		says string
	}{
		"no such tool":       {call("weather", struct{}{}), `there is no tool \"weather\"`},
		"no JSON":            {model.Call{Name: "outlets", Arguments: `{"active":`}, "not one JSON object"},
		"a list":             {model.Call{Name: "outlets", Arguments: `[]`}, "not one JSON object"},
		"an unknown label":   {overResult("r7", "print(1)"), `label \"r7\"; there are: r1`},
		"a label and data":   {model.Call{Name: "write_memory", Arguments: `{"from":"r1","data":1}`}, "violations"},
		"not the shape":      {call("write_memory", writeMemoryArgs{Data: json.RawMessage(`{"count":"ten"}`)}), "/count: "},
		"a missing argument": {call("exec_python", struct{}{}), "script"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCore(t)
			working(c)
			got, m := worked(t, c, callIt, tt.call, giveUp)
			if got.Status != taskInsufficient {
				t.Fatalf("%+v", got)
			}
			if said := lastResults(t, m)[1]; !strings.Contains(said, tt.says) {
				t.Errorf("the model was told %s, want %q", said, tt.says)
			}
			if d := cmp.Diff([]string{"skill.load", "skill.call", "step.finish"}, types(c.allPlaced())); d != "" {
				t.Errorf("intents (-want +got):\n%s", d)
			}
		})
	}
}

// TestDataIsWritten: a small result may be written unchanged.
func TestDataIsWritten(t *testing.T) {
	c := newCore(t)
	working(c)
	if got, _ := worked(t, c, callIt, call("write_memory", writeMemoryArgs{Data: json.RawMessage(`{"count":3}`)})); got.Status != taskDone {
		t.Fatalf("%+v", got)
	}
	var wrote catalog.WriteMemory
	if err := json.Unmarshal(c.ofType("write_memory")[0].Args, &wrote); err != nil || string(wrote.Data) != `{"count":3}` || wrote.From != "" {
		t.Errorf("%+v, error %v", wrote, err)
	}
}

// TestInput: the step's input is r0.
func TestInput(t *testing.T) {
	c := newCore(t)
	working(c)
	c.on("read_memory", done(catalog.ReadMemoryResult{Key: taskKey, Data: json.RawMessage(`[{"name":"a"}]`)}))
	c.on("exec_python", printed(`{"count":1}`))
	m := says(map[string][]any{agents.Executor: {overResult("r0", "print(1)"), write("r1")}})
	w := tasks(c, m)
	req := opened(c, w, time.Now().Add(time.Minute))
	req.Inputs = []stepInput{{1, taskKey}}
	if got := w.run(t.Context(), req); got.Status != taskDone {
		t.Fatalf("%+v", got)
	}
	if in, ok := block[labelledResult](t, m.requests(agents.Executor)[0], "Input"); !ok || in.Label != "r0" || string(in.Result) != `[{"name":"a"}]` {
		t.Errorf("shown %+v", in)
	}
	var ran catalog.ExecPython
	if err := json.Unmarshal(c.ofType("exec_python")[0].Args, &ran); err != nil || ran.From != c.ofType("read_memory")[0].ID {
		t.Errorf("%+v, error %v", ran, err)
	}
}

// TestNamedArtifact: an artifact that the user's message names is read like a result. Another one is
// not there.
func TestNamedArtifact(t *testing.T) {
	c := newCore(t)
	working(c)
	named, other := "cas://"+intents.Digest([]byte("a")), "cas://"+intents.Digest([]byte("b"))
	c.on("write_temp", done(catalog.WriteTempResult{FileID: "f9", SizeBytes: 1}))
	c.on("read_lines", done(catalog.ReadLinesResult{Lines: []string{"a"}}))
	c.on("exec_python", printed(`{"count":1}`))
	m := says(map[string][]any{agents.Executor: {overResult(other, "print(1)"), call("read_lines", readLinesArgs{named, 0, 1}), overResult(named, "print(1)"), write("r3")}})
	w := tasks(c, m)
	req := opened(c, w, time.Now().Add(time.Minute))
	req.UserTask = "Count the words. [The whole is the text " + named + "]"
	if got := w.run(t.Context(), req); got.Status != taskDone {
		t.Fatalf("%+v", got)
	}
	var made catalog.WriteTemp
	var read catalog.ReadLines
	var ran catalog.ExecPython
	files, lines, scripts := c.ofType("write_temp"), c.ofType("read_lines"), c.ofType("exec_python")
	if len(files) != 1 || len(lines) != 1 || len(scripts) != 1 {
		t.Fatalf("%d files, %d reads, %d scripts", len(files), len(lines), len(scripts))
	}
	if err := errors.Join(json.Unmarshal(files[0].Args, &made), json.Unmarshal(lines[0].Args, &read), json.Unmarshal(scripts[0].Args, &ran)); err != nil || made.From != named || read.FileID != "f9" || ran.From != "f9" {
		t.Errorf("%+v %+v %+v, error %v", made, read, ran, err)
	}
}

// TestSeveralInputs: each input has the number of its step, and a script joins them.
func TestSeveralInputs(t *testing.T) {
	c := newCore(t)
	working(c)
	c.on("read_memory", inTurn(
		done(catalog.ReadMemoryResult{Key: taskKey, Data: json.RawMessage(`[{"name":"a"}]`)}),
		done(catalog.ReadMemoryResult{Key: taskKey, Data: json.RawMessage(`[{"name":"b"}]`)}),
	))
	c.on("exec_python", printed(`{"count":2}`))
	join := call("exec_python", execPythonArgs{Script: "print(1)", Inputs: []string{"s1", "s3"}})
	both := call("exec_python", execPythonArgs{Script: "print(1)", From: "s1", Inputs: []string{"s3"}})
	m := says(map[string][]any{agents.Executor: {both, join, write("r2")}})
	w := tasks(c, m)
	req := opened(c, w, time.Now().Add(time.Minute))
	req.Inputs = []stepInput{{1, taskKey}, {3, taskKey}}
	if got := w.run(t.Context(), req); got.Status != taskDone {
		t.Fatalf("%+v", got)
	}
	in, ok := block[[]labelledResult](t, m.requests(agents.Executor)[0], "Input")
	if !ok || len(in) != 2 || in[0].Label != "s1" || in[1].Label != "s3" || string(in[1].Result) != `[{"name":"b"}]` {
		t.Errorf("shown %+v", in)
	}
	if told := lastResults(t, m)[0]; !strings.Contains(told, "from or inputs, not both") {
		t.Errorf("the model was told %s", told)
	}
	var ran catalog.ExecPython
	reads := c.ofType("read_memory")
	if err := json.Unmarshal(c.ofType("exec_python")[0].Args, &ran); err != nil || !maps.Equal(ran.Inputs, map[string]string{"s1": reads[0].ID, "s3": reads[1].ID}) {
		t.Errorf("%+v, error %v", ran, err)
	}
}

// TestCallRefused: the model receives the error of a failed call and may try something else; an
// error that is not about the call ends the step.
func TestCallRefused(t *testing.T) {
	c := newCore(t)
	working(c)
	c.on("skill.call", inTurn(refuse(intents.PolicyDenied, "not these outlets"), done(catalog.SkillCallResult{Output: json.RawMessage(`{"count":10}`)})))
	got, m := worked(t, c, callIt, callIt, write("r2"))
	if got.Status != taskDone {
		t.Fatalf("%+v", got)
	}
	if d := cmp.Diff(`{"error":{"code":"POLICY_DENIED","reason":"not these outlets"}}`, lastResults(t, m)[0]); d != "" {
		t.Errorf("the model was told (-want +got):\n%s", d)
	}

	c = newCore(t)
	working(c)
	c.on("skill.call", refuse(intents.KeyRevoked, "cancelled"))
	if got, _ := worked(t, c, callIt); got.Status != taskFailed || got.Reason != "cancelled (skill.call)" {
		t.Errorf("%+v", got)
	}
}

// TestCallsOfOneReply: calls with effects run in sequence, and none begins after one with an
// unknown end; each call is answered, in order.
func TestCallsOfOneReply(t *testing.T) {
	c := newCore(t)
	working(c)
	c.on("skill.load", func(p placed) *intents.Answer {
		return done(catalog.Manifest{Name: "outlets", InputSchema: json.RawMessage(`{"type":"object"}`), Effect: catalog.Once})(p)
	})
	c.on("skill.call", inTurn(done(catalog.SkillCallResult{Output: json.RawMessage(`{"closed":1}`)}), outcome(intents.Indeterminate, intents.StatusIndetermined, false)))
	reply := []model.Call{call("outlets", map[string]any{"close": 1}), call("outlets", map[string]any{"close": 2}), call("outlets", map[string]any{"close": 3})}
	_, m := worked(t, c, reply, giveUp)
	said := lastResults(t, m)
	for i, want := range []string{`"closed":1`, "INDETERMINATE", "not_executed"} {
		if !strings.Contains(said[i], want) {
			t.Errorf("result %d: %s, want %q", i, said[i], want)
		}
	}
	if n := len(c.ofType("skill.call")); n != 2 {
		t.Errorf("%d calls were signed", n)
	}
}

// TestLimit: at its limit an agent is asked once more, with its outputs alone.
func TestLimit(t *testing.T) {
	c := newCore(t)
	working(c)
	replies := make([]any, agents.DefaultRequests, agents.DefaultRequests+1)
	for i := range replies {
		replies[i] = callIt
	}
	got, m := worked(t, c, append(replies, giveUp)...)
	if got.Status != taskInsufficient || got.Reason != "no such outlets" {
		t.Errorf("%+v", got)
	}
	all := m.requests(agents.Executor)
	var offered []string
	for _, tool := range all[len(all)-1].Tools {
		offered = append(offered, tool.Name)
	}
	if d := cmp.Diff([]string{"write_memory", "insufficient"}, offered); d != "" || len(all) != agents.DefaultRequests+1 {
		t.Errorf("after %d requests offered (-want +got):\n%s", len(all), d)
	}

	c = newCore(t)
	working(c)
	if got, _ := worked(t, c, callIt); got.Status != taskInsufficient || got.Reason != errLimit.Error() {
		t.Errorf("%+v", got)
	}
	if n := len(c.ofType("skill.call")); n != agents.DefaultRequests {
		t.Errorf("%d calls were carried out", n)
	}
}

// TestTooLong: a conversation that the model finds too long is sent once more with old results
// truncated; the last ones stay unchanged.
func TestTooLong(t *testing.T) {
	c := newCore(t)
	working(c)
	big := marshal(map[string]string{"text": strings.Repeat("a", 5000)})
	c.on("skill.call", done(catalog.SkillCallResult{Output: big}))
	tooLong := &model.Error{Reason: "too long", Overflow: true}
	if got, m := worked(t, c, callIt, callIt, tooLong, giveUp); got.Status != taskInsufficient || got.Reason != "no such outlets" {
		t.Errorf("%+v", got)
	} else if said := lastResults(t, m); len(said[0]) > 2*shownOfOld || !strings.HasPrefix(said[0], `{"from":"r1","size_bytes":50`) || len(said[1]) < 5000 {
		t.Errorf("the model was shown %d and %d bytes: %.80s", len(said[0]), len(said[1]), said[0])
	}

	c = newCore(t)
	working(c)
	if got, _ := worked(t, c, tooLong); got.Status != taskFailed || got.Reason != "the model could not answer: too long" {
		t.Errorf("%+v", got)
	}
}
