package agentic

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state/agents"
)

// TestFinish: a call with finish ends the step with its result, cut to what the step returns. A
// result that is not what the step returns is shown with the reason, and the step goes on.
func TestFinish(t *testing.T) {
	for name, tt := range map[string]struct {
		output, kept string
		asked        int
	}{
		"as it is":            {`{"count":10}`, `{"from":`, 1},
		"with more":           {`{"count":10,"of":["a"],"token":"x"}`, `"data":{"count":10}`, 1},
		"of another form":     {`{"total":10}`, `"data":{"count":10}`, 2},
		"in a list of others": {`[{"count":10}]`, `"data":{"count":10}`, 2},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCore(t)
			working(c)
			c.on("skill.call", done(catalog.SkillCallResult{Output: json.RawMessage(tt.output)}))
			got, m := worked(t, c, call("outlets", map[string]any{"active": true, "finish": true}), call("write_memory", writeMemoryArgs{Data: json.RawMessage(`{"count":10}`)}))
			if got.Status != taskDone || len(m.requests(agents.Executor)) != tt.asked {
				t.Fatalf("%+v after %d requests", got, len(m.requests(agents.Executor)))
			}
			if args := string(c.ofType("skill.call")[0].Args); strings.Contains(args, "finish") {
				t.Errorf("the skill is called with %s", args)
			}
			if kept := string(c.ofType("write_memory")[0].Args); len(c.ofType("write_memory")) != 1 || !strings.Contains(kept, tt.kept) {
				t.Errorf("kept %s", kept)
			}
			if tt.asked == 2 && !strings.Contains(lastResults(t, m)[0], "not_finished") {
				t.Errorf("the model is told %s", lastResults(t, m))
			}
		})
	}
}

// TestFinishRefused: where the result of a call cannot be stored, the call was made all the same. The
// model reads its result with the reason; a step that waits says that the call is done.
func TestFinishRefused(t *testing.T) {
	refund := call("outlets", map[string]any{"order": "O-1", "finish": true})
	for _, code := range []intents.Code{intents.MemoryLock, intents.RateLimited, intents.ApprovalRequired} {
		c := newCore(t)
		working(c)
		c.on("skill.load", done(catalog.Manifest{Name: "outlets", InputSchema: json.RawMessage(`{"type":"object"}`), Effect: catalog.Once}))
		c.on("write_memory", refuse(code, "not now"))
		got, m := worked(t, c, refund, giveUp)
		if n := len(c.ofType("skill.call")); n != 1 {
			t.Errorf("%s: %d calls", code, n)
		}
		asked := m.requests(agents.Executor)
		if code == intents.ApprovalRequired {
			if got.Status != taskPendingApproval || !strings.HasPrefix(got.Reply, "Done (1):\n- outlets") || len(asked) != 1 {
				t.Errorf("%s: %+v", code, got)
			}
			continue
		}
		if len(asked) != 2 || !strings.Contains(results(asked[1])[0], `"count":10`) || !strings.Contains(results(asked[1])[0], "not now") || strings.Contains(results(asked[1])[0], `"error"`) || strings.Contains(results(asked[1])[0], `"retry_after_sec":1`) != (code == intents.MemoryLock) {
			t.Errorf("%s: the model is told %v", code, results(asked[len(asked)-1]))
		}
	}
}

// TestFinishOfOne: among several calls none ends the step, since the model has not seen the
// results of the others.
func TestFinishOfOne(t *testing.T) {
	c := newCore(t)
	working(c)
	one := call("outlets", map[string]any{"active": true, "finish": true})
	got, m := worked(t, c, []model.Call{one, one}, finishIt)
	if got.Status != taskDone || len(m.requests(agents.Executor)) != 2 || len(c.ofType("write_memory")) != 1 {
		t.Errorf("%+v after %d requests", got, len(m.requests(agents.Executor)))
	}
}

// TestFinishIsTaken: a skill whose own input has the member keeps it.
func TestFinishIsTaken(t *testing.T) {
	c := newCore(t)
	working(c)
	own := json.RawMessage(`{"type":"object","properties":{"finish":{"type":"string"}}}`)
	c.on("skill.load", done(catalog.Manifest{Name: "outlets", InputSchema: own, Effect: catalog.Pure}))
	_, m := worked(t, c, call("outlets", map[string]any{"finish": "matt"}), finishIt)
	if args := string(c.ofType("skill.call")[0].Args); !strings.Contains(args, `"finish":"matt"`) {
		t.Errorf("called with %s", args)
	}
	if got := m.requests(agents.Executor)[0].Tools[0]; string(got.Schema) != string(own) {
		t.Errorf("offered with %s", got.Schema)
	}
}

// TestRemember: write_memory has the step's schema, and takes the answer in a plan of one step
// alone.
func TestRemember(t *testing.T) {
	for _, only := range []bool{false, true} {
		c := newCore(t)
		working(c)
		m := says(map[string][]any{agents.Executor: {callIt, call("write_memory", writeMemoryArgs{From: "r1", Answer: composed, Notes: "Two are doubtful."})}})
		w := tasks(c, m)
		req := opened(c, w, time.Now().Add(time.Minute))
		req.Only = only
		got := w.run(t.Context(), req)
		if (got.Answer == composed) != only || got.Status != taskDone {
			t.Errorf("only %v: %+v", only, got)
		}
		if args := string(c.ofType("write_memory")[0].Args); !strings.Contains(args, `"notes":"Two are doubtful."`) {
			t.Errorf("kept %s", args)
		}
		for _, tool := range m.requests(agents.Executor)[0].Tools {
			if schema := string(tool.Schema); tool.Name == "write_memory" && (!strings.Contains(schema, `"count"`) || strings.Contains(schema, "the whole answer") != only) {
				t.Errorf("only %v: %s", only, schema)
			}
		}
	}
}

// TestAnswerOfStep: the answer of the only step's task is that of the plan, without a composer.
func TestAnswerOfStep(t *testing.T) {
	c := newCore(t)
	managed(c)
	m := wellDone()
	m.replies[agents.Executor][1] = call("write_memory", writeMemoryArgs{From: "r1", Answer: "There are ten outlets."})
	layer(c, m, allRoles...)
	dispatchTurn(c)
	frames := shown(c)
	if got := dataOf[bus.AnswerData](t, frames[len(frames)-2]); got.Response != "There are ten outlets." || string(got.Data) != `{"count":10}` || len(m.requests(agents.Composer)) != 0 {
		t.Errorf("answered %+v", got)
	}
}
