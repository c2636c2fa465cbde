package agentic

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state/agents"
)

// earlier is a call of an earlier task, as transcript.get returns it.
func earlier(at string, close int, status string, code intents.Code) catalog.TranscriptCall {
	c := catalog.TranscriptCall{
		CallSummary: catalog.CallSummary{Step: 1, IntentID: intents.Digest([]byte(at)), Call: at, Type: "skill.call", Status: status},
		Args:        marshal(map[string]any{"skill": "outlets", "input": map[string]any{"close": close}}), Code: code,
	}
	if status == "done" {
		c.Result = marshal(catalog.SkillCallResult{Output: marshal(map[string]any{"closed": close})})
	}
	return c
}

// goesOn runs a task of a step whose earlier tasks made these calls.
func goesOn(t *testing.T, c *core, m model.Model, calls ...catalog.TranscriptCall) runReply {
	t.Helper()
	c.on("skill.load", done(catalog.Manifest{Name: "outlets", InputSchema: json.RawMessage(`{"type":"object"}`), Effect: catalog.Once}))
	polls := 0
	c.on("transcript.get", func(p placed) *intents.Answer {
		told := slices.Clone(calls)
		for i := range told {
			if polls == 0 && told[i].Status == "done" {
				told[i].Status, told[i].Result = "open", nil
			}
		}
		polls++
		return done(catalog.TranscriptGetResult{Calls: told})(p)
	})
	w := tasks(c, m)
	req := opened(c, w, time.Now().Add(time.Minute))
	for _, call := range calls {
		req.Calls = append(req.Calls, call.CallSummary)
	}
	return w.run(t.Context(), req)
}

// TestGoesOn: a task continues from the calls of earlier ones. Its model is asked with these
// calls in their replies, once none is still executing; a call that it repeats is answered
// without an intent, each once; new calls are numbered after them.
func TestGoesOn(t *testing.T) {
	c := newCore(t)
	working(c)
	m := says(map[string][]any{agents.Executor: {
		[]model.Call{call("outlets", map[string]any{"close": 7}), call("outlets", map[string]any{"close": 8}), call("outlets", map[string]any{"close": 7})},
		giveUp,
	}})
	got := goesOn(t, c, m,
		earlier("2.1", 6, "indeterminate", intents.Indeterminate), earlier("1.0", 7, "done", intents.OK), earlier("2.0", 5, "failed", intents.ApprovalRejected))
	if got.Status != taskInsufficient {
		t.Fatalf("%+v", got)
	}
	var said []string
	for _, x := range m.requests(agents.Executor)[0].Messages[2:] {
		said = append(said, string(x.Role), x.Text)
		for _, made := range x.Calls {
			said = append(said, made.Name+made.Arguments)
		}
	}
	for i, want := range []string{
		"assistant", "", `outlets{"close":7}`, "tool", `{"closed":7}`, "assistant", "", `outlets{"close":5}`, `outlets{"close":6}`,
		"tool", "APPROVAL_REJECTED", "tool", `{"status":"unknown"}`,
	} {
		if i >= len(said) || !strings.Contains(said[i], want) {
			t.Fatalf("message %d is not %s: %q", i, want, said)
		}
	}
	results := lastResults(t, m)[3:]
	if !strings.Contains(results[0], `"already_done":true`) || strings.Contains(results[1], "already_done") || strings.Contains(results[2], "already_done") {
		t.Errorf("%q", results)
	}
	signed := c.ofType("skill.call")
	if len(signed) != 2 || signed[0].Call != "3.1" || signed[0].Occurrence != 0 || signed[1].Call != "3.2" || signed[1].Occurrence != 1 {
		t.Errorf("%+v", signed)
	}
}

// TestGoesOnToItsEnd: if an earlier task has stored the result of the step, only its end is
// missing.
func TestGoesOnToItsEnd(t *testing.T) {
	c := newCore(t)
	working(c)
	wrote := earlier("1.0", 7, "done", intents.OK)
	wrote.Type, wrote.Args, wrote.Result = "write_memory", json.RawMessage(`{"label":"l","data":1}`), marshal(catalog.WriteMemoryResult{Key: taskKey})
	if got := goesOn(t, c, says(nil), wrote); got.Status != taskDone {
		t.Errorf("%+v", got)
	}
	if f := finish(c); f.MemoryKey != taskKey || f.Status != taskDone {
		t.Errorf("%+v", f)
	}
}

// TestHeldCall: a call that waits for approval ends its task once all calls of the reply were
// made. The text of the turn is written from what became of them, without the model.
func TestHeldCall(t *testing.T) {
	c := newCore(t)
	working(c)
	c.on("skill.load", done(catalog.Manifest{Name: "outlets", InputSchema: json.RawMessage(`{"type":"object"}`), Effect: catalog.Once}))
	held := outcome(intents.ApprovalRequired, "", false)
	c.on("skill.call", inTurn(func(p placed) *intents.Answer { a := held(p); a.Outcome = nil; return a }, done(catalog.SkillCallResult{Output: json.RawMessage(`{"closed":2}`)})))
	reply := []model.Call{call("outlets", map[string]any{"close": 1}), call("outlets", map[string]any{"close": 2}), {ID: "w", Name: "write_memory", Arguments: `{"data":1}`}}
	got, m := worked(t, c, reply)
	if got.Status != taskPendingApproval || got.Approval == nil || got.Approval.Type != "skill.call" || got.Plan == nil {
		t.Fatalf("%+v", got)
	}
	if f := finish(c); f.Status != taskPendingApproval || f.Reply != "Waiting for approval (1):\n- outlets {\"close\":1}\n\nDone (1):\n- outlets {\"close\":2}" || len(m.requests(agents.Executor)) != 1 {
		t.Errorf("%+v", f)
	}
	if n := len(c.ofType("write_memory")); n != 0 {
		t.Errorf("%d results were remembered", n)
	}
}

// TestUnsignable: the model receives a violation for content that no intent can have. The step
// continues, and nothing was signed.
func TestUnsignable(t *testing.T) {
	for name, args := range map[string]string{
		"a big integer":    `{"x":1234567890123456789}`,
		"-0":               `{"x":{"y":[-0.0]}}`,
		"too many digits":  `{"x":52.5200065999999991}`,
		"no double":        `{"x":1e400}`,
		"half a character": `{"x":"cut \ud83d"}`,
		"a member twice":   `{"x":1,"x":2}`,
		"NaN":              `{"x":NaN}`,
		"too deep alone":   `{"x":` + strings.Repeat("[", 32) + strings.Repeat("]", 32) + `}`,
		"too deep inside":  `{"x":` + strings.Repeat("[", 30) + strings.Repeat("]", 30) + `}`,
		"too long":         `{"x":"` + strings.Repeat("x", 50<<10) + `"}`,
	} {
		t.Run(name, func(t *testing.T) {
			c := newCore(t)
			working(c)
			c.on("skill.load", done(catalog.Manifest{Name: "outlets", InputSchema: json.RawMessage(`{"type":"object"}`), Effect: catalog.Once}))
			got, m := worked(t, c, []model.Call{{ID: "a", Name: "outlets", Arguments: args}}, giveUp)
			if got.Status != taskInsufficient {
				t.Fatalf("%+v", got)
			}
			if said := lastResults(t, m); len(said) != 1 || !strings.Contains(said[0], `"violations"`) && !strings.Contains(said[0], string(intents.PayloadTooLarge)) {
				t.Errorf("the model is told %v", said)
			}
			if n := len(c.ofType("skill.call")); n != 0 {
				t.Errorf("%d calls were signed", n)
			}
		})
	}
}

// TestOneTooMany: the model receives a temporary refusal for that call alone, with the time;
// other calls of the reply that wait for approval keep waiting, and the user learns which do and
// which do not.
func TestOneTooMany(t *testing.T) {
	for _, code := range []intents.Code{intents.Overloaded, intents.RateLimited, intents.MemoryLock} {
		t.Run(string(code), func(t *testing.T) {
			c := newCore(t)
			working(c)
			c.on("skill.load", done(catalog.Manifest{Name: "outlets", InputSchema: json.RawMessage(`{"type":"object"}`), Effect: catalog.Once}))
			held := refuse(intents.ApprovalRequired, "somebody must agree")
			c.on("skill.call", inTurn(held, retryIn(code, 60), held))
			var reply []model.Call
			for i := range 3 {
				reply = append(reply, call("outlets", map[string]any{"close": i}))
			}
			got, _ := worked(t, c, reply)
			if got.Status != taskPendingApproval {
				t.Fatalf("%+v", got)
			}
			if f := finish(c); f.Reply != "Waiting for approval (2):\n- outlets {\"close\":0}\n- outlets {\"close\":2}\n\nNot carried out (1):\n- outlets {\"close\":1}: not now" {
				t.Errorf("%q", f.Reply)
			}
		})
	}
}

// TestEqualCalls: two equal calls are intended twice, so they are two intents; a refused call
// does not count, so the next one equals it again.
func TestEqualCalls(t *testing.T) {
	for name, tt := range map[string]struct {
		verdict intents.Verdict
		want    int
	}{"accepted": {intents.Allow, 1}, "refused": {intents.Deny, 0}} {
		t.Run(name, func(t *testing.T) {
			c := newCore(t)
			working(c)
			c.on("skill.load", done(catalog.Manifest{Name: "outlets", InputSchema: json.RawMessage(`{"type":"object"}`), Effect: catalog.Once}))
			c.on("skill.call", func(p placed) *intents.Answer {
				a := refuse(intents.PolicyDenied, "no")(p)
				if tt.verdict == intents.Allow {
					a = done(catalog.SkillCallResult{Output: json.RawMessage(`{"closed":1}`)})(p)
				}
				a.Decision = &intents.Decision{Verdict: tt.verdict}
				return a
			})
			same := map[string]any{"close": 1}
			worked(t, c, []model.Call{call("outlets", same), call("outlets", same)}, giveUp)
			signed := c.ofType("skill.call")
			if len(signed) != 2 || signed[0].Occurrence != 0 || signed[1].Occurrence != tt.want || (signed[0].Key == signed[1].Key) != (tt.want == 0) {
				t.Errorf("%+v", signed)
			}
		})
	}
}
