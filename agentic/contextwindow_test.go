package agentic

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state/agents"
)

// sized is a model with a known context size.
type sized struct {
	*script
	tokens int
}

func (s sized) ContextTokens() int { return s.tokens }

// TestContextTokens: no request exceeds the model's context: the oldest results are shortened,
// one by one, and read_lines still returns their lines. The user's message and the newest results
// stay.
func TestContextTokens(t *testing.T) {
	c := newCore(t)
	working(c)
	text := strings.Repeat("line\n", 799) + "the last line"
	c.on("skill.call", done(catalog.SkillCallResult{Output: marshal(text)}))
	m := sized{says(map[string][]any{agents.Executor: {callIt, callIt, callIt, call("read_lines", readLinesArgs{From: "r1", Start: 798, N: 5}), giveUp}}), 4000}
	w := tasks(c, m)
	got := w.run(t.Context(), opened(c, w, time.Now().Add(time.Minute)))
	if got.Status != taskInsufficient || got.Reason != "no such outlets" || len(c.ofType("read_lines")) != 0 {
		t.Fatalf("%+v", got)
	}
	all := m.requests(agents.Executor)
	for i, req := range all {
		l := loop{req: req}
		if n := l.size(); n > 4000*model.BytesPerToken/8*7 {
			t.Errorf("request %d has %d bytes", i, n)
		}
		if req.Messages[len(req.Messages)-1-2*i].Role != model.RoleUser || req.Messages[len(req.Messages)-1-2*i].Text != all[0].Messages[len(all[0].Messages)-1].Text {
			t.Errorf("request %d has another message of the user", i)
		}
	}
	said := lastResults(t, m.script)
	if len(said) != 4 || !strings.HasPrefix(said[0], `{"from":"r1","size_bytes":48`) || len(said[0]) > 2*shownOfOld || len(said[2]) < len(text) {
		t.Errorf("%.100q", said)
	}
	if want := `{"lines":["line","the last line"]}`; said[len(said)-1] != want {
		t.Errorf("read_lines gave %s, want %s", said[len(said)-1], want)
	}
}

// TestHistoryBudget: the history of a session gets an eighth of the model's context.
func TestHistoryBudget(t *testing.T) {
	for tokens, want := range map[int]int{0: HistoryTokens, 8000: 1000, 1_000_000: MostHistory} {
		d := conversation{Run: &Run{cfg: Config{Model: model.Fallback(sized{tokens: tokens}, sized{})}}}
		if got := d.historyBudget(); got != want {
			t.Errorf("a model of %d tokens: %d, want %d", tokens, got, want)
		}
	}
}

// TestHistoryFits: the oldest messages of the history are left out, in so many words, until the request
// fits the model's context, or when its server finds it too long. The user's message stays.
func TestHistoryFits(t *testing.T) {
	var said []catalog.ChatMessage
	for n := range 30 {
		said = append(said, catalog.ChatMessage{Role: []string{catalog.SpeakerUser, catalog.SpeakerAgent}[n%2], Content: fmt.Sprint(n, strings.Repeat(".", 1000))})
	}
	overflow := &model.Error{Overflow: true, Reason: "too long"}
	for name, tt := range map[string]struct {
		context, leftOut int // by the client
		replies          []any
		cut              bool
	}{
		"a small context":     {4000, 0, []any{composed}, true},
		"cut by the client":   {4000, 5, []any{composed}, true},
		"a server's own":      {0, 0, []any{overflow, composed}, true},
		"room for everything": {100_000, 0, []any{composed}, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCore(t)
			about := catalog.TurnContext{History: said, LeftOut: tt.leftOut}
			managed(c)
			claim := c.reply["plan.claim"]
			c.on("plan.claim", func(p placed) *intents.Answer {
				a := claim(p)
				var plan catalog.PlanView
				if err := json.Unmarshal(a.Outcome.Result, &plan); err != nil {
					t.Error(err)
				}
				plan.Turn = &about
				a.Outcome.Result = marshal(plan)
				return a
			})
			m := sized{says(map[string][]any{agents.Planner: tt.replies}), tt.context}
			layer(c, m, allRoles...)
			dispatchTurn(c)
			shown(c)
			all := m.requests(agents.Planner)
			last := all[len(all)-1]
			l := loop{req: last}
			if limit := tt.context * model.BytesPerToken / 8 * 7; limit > 0 && l.size() > limit {
				t.Errorf("%d bytes", l.size())
			}
			history := last.Messages[1 : len(last.Messages)-1]
			mark := history[0]
			if tt.cut {
				history = history[1:]
			}
			first := len(said) - len(history) // of the newest, which are left
			if tt.cut && (mark.Role != model.RoleSystem || mark.Text != fmt.Sprintf("[%d earlier messages left out]", tt.leftOut+first)) {
				t.Errorf("%+.200v", mark)
			}
			if tt.cut == (first == 0) || len(history) < 5 || history[0].Text != said[first].Content || history[len(history)-1].Text != said[29].Content {
				t.Errorf("%d messages of the history", len(history))
			}
			if !strings.Contains(last.Messages[len(last.Messages)-1].Text, "How many outlets are there?") || closed(c).Response != composed {
				t.Errorf("%+v", closed(c))
			}
		})
	}
}

// TestSeenImages: the images of a reply's calls follow its results, in their order, up to a bound. They are the first to
// go if a request is too long, and the results before them stay whole.
func TestSeenImages(t *testing.T) {
	c := newCore(t)
	working(c)
	shot := func(n int) func(placed) *intents.Answer {
		return func(placed) *intents.Answer {
			a := done(catalog.SkillCallResult{Output: marshal(strings.Repeat("seen ", 1000))})(placed{})
			var list []intents.Image
			for range n {
				list = append(list, intents.Image{MIMEType: "image/png", FileID: "f_1", Data: []byte("png")})
			}
			a.Details = marshal(catalog.SkillCallDetails{Images: list})
			return a
		}
	}
	c.on("skill.call", shot(3))
	overflow := &model.Error{Overflow: true, Reason: "too long"}
	m := says(map[string][]any{agents.Executor: {callIt, callIt, callIt, overflow, giveUp}})
	w := tasks(c, m)
	if got := w.run(t.Context(), opened(c, w, time.Now().Add(time.Minute))); got.Status != taskInsufficient {
		t.Fatalf("%+v", got)
	}
	all := m.requests(agents.Executor)
	if len(all) != 5 {
		t.Fatalf("%d requests", len(all))
	}
	for i, want := range []int{0, 3, 6, 8, 0} {
		shown, out := 0, 0
		for n, x := range all[i].Messages {
			shown, out = shown+len(x.Shown), out+strings.Count(x.Text, "left out")
			if len(x.Shown) > 0 && (x.Role != model.RoleUser || all[i].Messages[n-1].Role != model.RoleTool || x.Shown[0] != "data:image/png;base64,cG5n" || !strings.HasPrefix(x.Text, "image/png of result r")) {
				t.Errorf("request %d, message %d: %+v", i, n, x)
			}
		}
		if left := map[int]int{3: 1, 4: 4}[i]; shown != want || out != left {
			t.Errorf("request %d shows %d images, want %d, and leaves out %d", i, shown, want, out)
		}
	}
}
