package agentic

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/bus"
	"aob.dev/writ/bus/natsserver"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state/agents"
)

// TestMemberReader: however the arguments are cut, the pieces are the text of the one member, each as
// soon as it is whole.
func TestMemberReader(t *testing.T) {
	for doc, want := range map[string]string{
		`{"data":{"answer":"no","x":["answer","{"]},"answer" : "Zwölf \"é\" \ud83d\ude00\nfine\\","notes":"answer"}`: "Zwölf \"é\" 😀\nfine\\",
		`{"answer":7,"data":"answer"}`:      "",
		`["answer","x"]`:                    "",
		`"{\"answer\":\"x\"}"`:              "",
		`{"answer":["x"],"b":"answer"}`:     "",
		"{\"answer\":\"a line\nand more\"}": "",
	} {
		for size := 1; size <= len(doc); size++ {
			r := memberReader{name: "answer"}
			got := ""
			for at := 0; at < len(doc); at += size {
				got += r.next(doc[at:min(at+size, len(doc))])
			}
			if got != want && !(want == "" && strings.HasPrefix("a line", got)) {
				t.Errorf("%s in pieces of %d: %q", doc, size, got)
			}
		}
	}
	r := memberReader{name: "answer"}
	if got := r.next(`{"answer":"Te`); got != "Te" {
		t.Errorf("the first piece gives %q", got)
	}
}

// follow sends the frames of the turn to a channel, until its end.
func follow(c *core) <-chan bus.TurnFrame {
	c.t.Helper()
	out := make(chan bus.TurnFrame, 100)
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	conn := c.connect(natsserver.Frames)
	go func() {
		defer cancel()
		defer close(out)
		_ = conn.Frames(ctx, bus.Turn(theTurn.Tenant, theTurn.TurnID), 0, func(f bus.Frame) bool {
			var t bus.TurnFrame
			_ = json.Unmarshal(f.Data, &t)
			out <- t
			return t.Kind != bus.FrameDone
		})
	}()
	return out
}

// TestAnswerIsStreamed: the answer in a step's write_memory, or in a planner's plan, is shown while it
// is written: its first piece before the model has written the second. One that is not accepted is
// withdrawn.
func TestAnswerIsStreamed(t *testing.T) {
	text := countStep
	text.ReturnSpec.Shape = "string"
	for name, tt := range map[string]struct {
		plan     any
		agent    string
		pieces   []string
		corrects bool
	}{
		"of a step":      {onePlan, agents.Executor, []string{`{"answer":"There are `, `ten.","data":{"count":10}}`}, false},
		"of a text":      {call("plan", planArgs{Steps: []catalog.PlanStep{text}}), agents.Executor, []string{`{"data":"There are `, `ten."}`}, false},
		"not accepted":   {onePlan, agents.Executor, []string{`{"answer":"There are `, `ten.","data":{"count":"x"}}`}, true},
		"of the planner": {nil, agents.Planner, []string{`{"answer":"There are `, `ten."}`}, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCore(t)
			managed(c)
			if tt.plan == nil || name == "of a text" {
				c.on("read_memory", done(catalog.ReadMemoryResult{Key: taskKey, Data: json.RawMessage(`"There are ten."`)}))
			}
			m := wellDone()
			pieces := make(chan string)
			write := func(on func(model.Event)) model.Call {
				out := model.Call{Name: map[string]string{agents.Executor: "write_memory", agents.Planner: "plan"}[tt.agent]}
				on(model.Event{Text: "Let me see."})
				for piece := range pieces {
					out.Arguments += piece
					on(model.Event{Tool: out.Name, Text: piece})
				}
				return out
			}
			m.replies[agents.Planner], m.replies[agents.Executor] = []any{tt.plan}, []any{write, call("write_memory", writeMemoryArgs{Data: json.RawMessage(`{"count":10}`), Answer: "There are ten."})}
			if tt.plan == nil {
				m.replies[agents.Planner] = []any{write}
			}
			layer(c, m, allRoles...)
			frames := follow(c)
			dispatchTurn(c)
			pieces <- tt.pieces[0]
			shown, sent := "", false
			for f := range frames {
				if f.Kind == bus.FrameToken {
					d := dataOf[bus.ContentData](t, f)
					if d.Reset {
						shown = ""
					}
					if shown += d.Text; shown == "There are " && !sent {
						sent = true
						pieces <- tt.pieces[1]
						close(pieces)
					}
				}
			}
			want := "There are ten."
			if tt.corrects {
				want = "" // the answer frame has it
			}
			if !sent || shown != want {
				t.Errorf("shown %q", shown)
			}
			if got := closed(c); got.Response != "There are ten." || len(m.requests(agents.Composer)) != 0 {
				t.Errorf("closed with %+v", got)
			}
			if d := cmp.Diff(tt.corrects, len(m.requests(tt.agent)) == 2); d != "" {
				t.Errorf("asked again (-want +got):\n%s", d)
			}
		})
	}
}
