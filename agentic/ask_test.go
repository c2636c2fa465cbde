package agentic

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/logging"
	"aob.dev/writ/state/agents"
)

// admitTask registers the key of an asked agent's task.
func (c *core) admitTask(p placed) {
	var a catalog.AgentAsk
	if err := json.Unmarshal(p.Args, &a); err != nil {
		c.t.Error(err)
	}
	k, err := a.JWK.ToKey()
	if err != nil {
		c.t.Error(err)
		return
	}
	pop := a.PoP
	a.PoP = ""
	if err := intents.VerifyPoP(pop, k, a); err != nil {
		c.t.Error(err)
	}
	k.Role, k.Task = intents.RoleTask, a.TaskID
	c.keys[k.KID] = k
}

// hub is an agent that asks three others.
const hub = `
name: hub
description: Asks others.
sub_agents: [shop, rewards, support]
`

// others are the agents that hub may ask.
var others = []catalog.OtherAgent{
	{Agent: "shop", DisplayName: "Shop", Description: "Knows offers.\nAnd prices.", TimeLimitSec: 60},
	{Agent: "rewards", Description: "Knows points.", TimeLimitSec: 60},
	{Agent: "support", DisplayName: "Support", Description: "Knows returns.", TimeLimitSec: 60},
}

// asking has the core return the plan of an agent that may ask others, each of which has one
// skill.
func asking(c *core, text string, may []catalog.OtherAgent) {
	c.t.Helper()
	selling(c, text)
	var mu sync.Mutex
	children := map[string]string{}
	entry, err := agents.Parse([]byte(text))
	if err != nil {
		c.t.Fatal(err)
	}
	c.on("agent.get", func(p placed) *intents.Answer {
		mu.Lock()
		defer mu.Unlock()
		if name := children[p.Place.TaskID]; name != "" {
			return done(catalog.AgentGetResult{Agent: name, Text: "name: " + name + "\ndescription: Answers.\nsub_agents: [hub]\ntools: [{server: crm, name: list, status: looking_up}]\nstatus_events: {looking_up: {}}\n", TimeLimitSec: 300})(p)
		}
		return done(catalog.AgentGetResult{Agent: entry.Name, Text: text, TimeLimitSec: entry.Limits.Seconds, Others: may})(p)
	})
	c.on("agent.ask", func(p placed) *intents.Answer {
		var a catalog.AgentAsk
		_ = json.Unmarshal(p.Args, &a)
		mu.Lock()
		children[a.TaskID] = a.Agent
		mu.Unlock()
		return done(catalog.AgentAskResult{TaskID: a.TaskID, Skills: []string{"crm.list"}})(p)
	})
}

func ask(agent, input string) model.Call { return call("ask_"+agent, catalog.AskArgs{Input: input}) }

// asks returns the arguments of all agent.ask.
func asks(c *core) (out []catalog.AgentAsk) {
	for _, p := range c.ofType("agent.ask") {
		var a catalog.AgentAsk
		if err := json.Unmarshal(p.Args, &a); err != nil {
			c.t.Fatal(err)
		}
		out = append(out, a)
	}
	return out
}

// ends returns the step.finish of all tasks, by task.
func ends(c *core) map[string]catalog.StepFinish {
	out := map[string]catalog.StepFinish{}
	for _, p := range c.ofType("step.finish") {
		var f catalog.StepFinish
		if err := json.Unmarshal(p.Args, &f); err != nil {
			c.t.Fatal(err)
		}
		out[f.TaskID] = f
	}
	return out
}

// played has an agent answer a turn, and returns the log of the agentic layer.
func played(c *core, m model.Model) (frames []bus.TurnFrame, log string) {
	c.t.Helper()
	return managedBy(c, m, nil)
}

// managedBy is played with a counter of the tasks' asks.
func managedBy(c *core, m model.Model, asked func(string, time.Duration, time.Duration, string)) (frames []bus.TurnFrame, log string) {
	c.t.Helper()
	var b syncBuffer
	task, manager := c.config("task", m), c.config("manager", m)
	task.Log = logging.New(&b, slog.LevelInfo, true)
	task.CountAsk, manager.Log = asked, task.Log
	task.Figure, manager.Figure = c.figure, c.figure
	c.serve("task", ignoring(NewTasks(task).Serve))
	c.serve("manager", ignoring(NewManager(manager).Serve))
	dispatchTurn(c)
	frames = shown(c)
	deadline := time.After(patience)
	for !strings.Contains(b.String(), "msg=agent.routing") {
		select {
		case <-deadline:
			c.t.Fatal(b.String())
		case <-time.After(time.Millisecond):
		}
	}
	return frames, b.String()
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// TestAskTools: each agent that may be asked is a tool with its own description; above ten, and
// for an agent that may ask any, there is one tool for all, and a search.
func TestAskTools(t *testing.T) {
	many := []catalog.OtherAgent{}
	names := []string{}
	for i := range 11 {
		many = append(many, catalog.OtherAgent{Agent: fmt.Sprintf("a%d", i), Description: fmt.Sprintf("Knows matter %d.", i)})
		names = append(names, fmt.Sprintf("a%d", i))
	}
	many[7].Description = "Knows returned bicycles."
	long := strings.Repeat("x", 60)
	edge := []catalog.OtherAgent{{Agent: "a-b_c", Description: "One."}, {Agent: "0", Description: "Two."}, {Agent: long, Description: "Three."}}
	for name, tt := range map[string]struct {
		text string
		may  []catalog.OtherAgent
		want []string
	}{
		"three":      {hub, others, []string{"ask_shop", "ask_rewards", "ask_support"}},
		"edges":      {"name: hub\ndescription: Asks.\nsub_agents: [a-b_c, '0', " + long + "]\n", edge, []string{"ask_a-b_c", "ask_0", "ask_" + long}},
		"ten":        {"name: hub\ndescription: Asks.\nsub_agents: [" + strings.Join(names[:10], ", ") + "]\n", many[:10], []string{"ask_a0", "ask_a1", "ask_a2", "ask_a3", "ask_a4", "ask_a5", "ask_a6", "ask_a7", "ask_a8", "ask_a9"}},
		"eleven":     {"name: hub\ndescription: Asks.\nsub_agents: [" + strings.Join(names, ", ") + "]\n", many, []string{"ask_agent", "find_agents"}},
		"any of few": {"name: hub\ndescription: Asks.\ntools: [{name: ask_agent}]\n", others, []string{"ask_agent"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCore(t)
			asking(c, tt.text, tt.may)
			c.on("skill.load", refuse(intents.PolicyDenied, "none"))
			m := says(map[string][]any{"hub": {"Nothing to ask."}})
			played(c, m)
			first := m.requests("hub")[0]
			if d := gocmp.Diff(tt.want, toolNames(first)); d != "" {
				t.Fatalf("tools (-want +got):\n%s", d)
			}
			if !strings.Contains(first.System, "\n## Sub-agents\n") {
				t.Errorf("system prompt %q", first.System)
			}
			for i, tool := range first.Tools {
				if strings.HasPrefix(tool.Name, "ask_") && tool.Name != "ask_agent" && tool.Description != tt.may[i].Description {
					t.Errorf("%s is described as %q", tool.Name, tool.Description)
				}
			}
		})
	}
	if got := foundAgents(many, "My Bicycles were returned"); len(got) != 10 || got[0].Agent != "a7" || got[1].Agent != "a0" {
		t.Errorf("found %v", got)
	}
}

// TestAskAny: ask_agent asks the agent that it names, and no other.
func TestAskAny(t *testing.T) {
	c := newCore(t)
	asking(c, "name: hub\ndescription: Asks.\ntools: [{name: ask_agent}]\n", others)
	m := says(map[string][]any{
		"hub": {[]model.Call{
			call("ask_agent", map[string]string{"agent_name": "shop", "input_text": "Offers?"}),
			call("ask_agent", map[string]string{"agent_name": "bank", "input_text": "Money?"}),
		}, "Ten percent off."},
		"shop": {"Ten percent."},
	})
	played(c, m)
	asked := asks(c)
	if len(asked) != 1 || asked[0].Agent != "shop" || asked[0].Input != "Offers?" {
		t.Errorf("asked %+v", asked)
	}
	if got := results(m.requests("hub")[1]); len(got) != 2 || got[0] != `{"text":"Ten percent."}` || !strings.Contains(got[1], "there is no agent") {
		t.Errorf("told %q", got)
	}
	for _, tool := range m.requests("hub")[0].Tools {
		if tool.Name == "ask_agent" && !strings.Contains(string(tool.Schema), `"required":["agent_name","input_text"]`) {
			t.Errorf("%s", tool.Schema)
		}
	}
}

// TestAsks: the agents of one reply are asked concurrently, beside its calls. Each is a task of
// its own, under the call that asked for it, with its own prompt and tools, and cannot ask
// others. Its text is shown as its own, and the answer is the asking agent's.
func TestAsks(t *testing.T) {
	c := newCore(t)
	asking(c, hub, others)
	c.on("session.get", done(catalog.Session{Status: catalog.SessionActive, Summary: &catalog.TurnSummary{Agents: []string{"rewards"}, Text: "rewards said 120 points"}}))
	both := newMeeting(2)
	m := says(map[string][]any{
		"hub":     {[]model.Call{ask("shop", "Offers?"), call("crm_list", struct{}{}), ask("rewards", "Points?")}, "Ten percent off, and 120 points."},
		"shop":    {both.reply(call("crm_list", struct{}{})), "Ten percent."},
		"rewards": {both.reply("120 points.")},
	})
	frames, log := played(c, m)
	asked := asks(c)
	slices.SortFunc(asked, func(a, b catalog.AgentAsk) int { return cmp.Compare(b.Agent, a.Agent) })
	if len(asked) != 2 || asked[0].Agent != "shop" || asked[0].Input != "Offers?" || asked[0].Epoch != 1 || asked[0].Context.EpisodeID != "sess_1" {
		t.Fatalf("asked %+v", asked)
	}
	if asked[0].Context.PriorContext != "rewards said 120 points" || asked[1].Context.PriorContext != "" {
		t.Errorf("prior contexts %q, %q", asked[0].Context.PriorContext, asked[1].Context.PriorContext)
	}
	paths := map[string]string{}
	for _, p := range c.ofType("agent.ask") {
		var a catalog.AgentAsk
		_ = json.Unmarshal(p.Args, &a)
		paths[a.Agent] = p.Call
		if p.Place.Ask != "" || p.Place.TaskID != a.Parent {
			t.Errorf("asked in place %+v by %s", p.Place, a.Parent)
		}
	}
	if paths["shop"] != "1.0" || paths["rewards"] != "1.2" {
		t.Errorf("paths %v", paths)
	}
	for _, p := range c.ofType("skill.call") {
		if want := map[bool]string{true: "", false: "1.0"}[p.Place.TaskID == asked[0].Parent]; p.Place.Ask != want || p.Call == "" {
			t.Errorf("a skill was called in %+v, call %q", p.Place, p.Call)
		}
	}
	for _, p := range c.allPlaced() {
		if own := p.Type == "skill.call" || p.Type == "agent.ask"; own != (p.Call != "") {
			t.Errorf("%s is of call %q", p.Type, p.Call)
		}
	}
	var own []string // of the asking task: the agents it may ask are known before its model is asked
	for _, p := range c.allPlaced() {
		if p.Place.TaskID == asked[0].Parent {
			own = append(own, p.Type)
		}
	}
	if n := len(own); n == 0 || own[0] != "agent.get" || slices.Contains(own[1:], "agent.get") {
		t.Errorf("intents of the task that asks: %v", own)
	}
	first := m.requests("shop")[0]
	if !slices.Equal(toolNames(first), []string{"crm_list"}) || strings.Contains(first.System, "Sub-agents") || len(first.Messages) != 3 || first.Messages[2].Text != "Offers?" {
		t.Errorf("shop is asked %+v", first)
	}
	if head := first.Messages[0].Text; !strings.Contains(head, "Agent: shop") || !strings.Contains(head, "Session: sess_1") || strings.Contains(head, "rewards said") || first.Messages[1].Text != "[Prior context] rewards said 120 points" {
		t.Errorf("context of shop %q", head)
	}
	told := results(m.requests("hub")[1])
	if len(told) != 3 || told[0] != `{"text":"Ten percent."}` || told[2] != `{"text":"120 points."}` {
		t.Errorf("told %q", told)
	}
	said := map[string]string{}
	var tokens string
	for _, f := range frames {
		switch f.Kind {
		case bus.FrameChildContent:
			d := dataOf[bus.ContentData](t, f)
			said[d.Agent] += d.Text
		case bus.FrameToken:
			tokens += dataOf[bus.ContentData](t, f).Text
		default:
		}
	}
	if said["shop"] != "Ten percent." || said["rewards"] != "120 points." || tokens != "Ten percent off, and 120 points." {
		t.Errorf("shown %v and %q", said, tokens)
	}
	if got := closed(c); got.Response != "Ten percent off, and 120 points." {
		t.Errorf("plan.close %+v", got)
	}
	var sum []catalog.Usage
	for _, f := range ends(c) {
		if f.Status != taskDone || f.Reply == "" {
			t.Errorf("step.finish %+v", f)
		}
		sum = catalog.AddUsage(sum, f.Usage...)
	}
	if d := gocmp.Diff([]catalog.Usage{used("hub", 2), used("rewards", 1), used("shop", 2)}, sum, ignoreLatency); d != "" {
		t.Errorf("usage (-want +got):\n%s", d)
	}
	var kept catalog.SessionAppend
	_ = json.Unmarshal(c.ofType("session.append")[0].Args, &kept)
	if len(kept.Turns) != 2 || kept.Summary == nil || !slices.Equal(kept.Summary.Agents, []string{"rewards", "shop"}) || !strings.Contains(kept.Summary.Text, "ask_shop") || !strings.Contains(kept.Summary.Text, "Ten percent.") {
		t.Errorf("kept %+v", kept.Summary)
	}
	if !strings.Contains(log, "agent=hub intent_count=2 cap=within") || !strings.Contains(log, "outcomes.shop=success outcomes.rewards=success") || strings.Contains(log, "error_emit") {
		t.Errorf("log\n%s", log)
	}
}

var ignoreLatency = gocmp.Transformer("latency", func(u catalog.Usage) catalog.Usage {
	u.LatencyMS = 0
	return u
})

// meeting is a barrier: each participant waits for the others.
type meeting struct {
	mu   sync.Mutex
	left int
	all  chan struct{}
}

func newMeeting(n int) *meeting { return &meeting{left: n, all: make(chan struct{})} }

func (m *meeting) arrive(ctx context.Context) {
	m.mu.Lock()
	if m.left--; m.left == 0 {
		close(m.all)
	}
	m.mu.Unlock()
	select {
	case <-m.all:
	case <-ctx.Done():
	}
}

// reply returns a script reply that waits at the meeting.
func (m *meeting) reply(reply any) func(context.Context) any {
	return func(ctx context.Context) any {
		m.arrive(ctx)
		return reply
	}
}

// TestAskBeyondTheCap: asks beyond the cap are dropped before anything is signed, answered, and
// recorded.
func TestAskBeyondTheCap(t *testing.T) {
	for fanOut, tt := range map[int]struct {
		cap     string
		dropped []string
	}{1: {"over", []string{"rewards", "support"}}, 2: {"over", []string{"support"}}, 3: {"at", nil}, 4: {"within", nil}} {
		t.Run(tt.cap+fmt.Sprint(fanOut), func(t *testing.T) {
			c := newCore(t)
			asking(c, hub+fmt.Sprintf("limits: {max_fan_out: %d}\n", fanOut), others)
			m := says(map[string][]any{
				"hub":  {[]model.Call{ask("shop", "1"), ask("rewards", "2"), ask("support", "3")}, "Done."},
				"shop": {"s"}, "rewards": {"r"}, "support": {"u"},
			})
			_, log := played(c, m)
			if n := len(asks(c)); n != min(fanOut, 3) {
				t.Errorf("%d were asked", n)
			}
			told := results(m.requests("hub")[1])
			for i, text := range told {
				if dropped := strings.Contains(text, "not_executed: at most"); dropped != (i >= fanOut) {
					t.Errorf("ask %d is told %q", i, text)
				}
			}
			for task, f := range ends(c) {
				if own := task == asks(c)[0].Parent; own && !slices.Equal(f.Dropped, tt.dropped) || !own && f.Dropped != nil {
					t.Errorf("step.finish %+v", f)
				}
			}
			if !strings.Contains(log, "intent_count=3 cap="+tt.cap) {
				t.Errorf("log\n%s", log)
			}
			want := map[string]int{"intents 3+": 1, "cap " + tt.cap: 1, "outcome success": min(fanOut, 3)}
			if d := gocmp.Diff(want, c.figures()); d != "" {
				t.Errorf("figures (-want +got):\n%s", d)
			}
		})
	}
}

// TestAskHeld: an intent of an asked agent that waits for approval suspends the step, and the
// waiting intent is reported.
func TestAskHeld(t *testing.T) {
	c := newCore(t)
	asking(c, hub, others)
	c.on("skill.call", refuse(intents.ApprovalRequired, "somebody must agree"))
	m := says(map[string][]any{
		"hub":  {[]model.Call{ask("shop", "Buy."), ask("rewards", "Points?")}},
		"shop": {call("crm_list", struct{}{})}, "rewards": {"120 points."},
	})
	layer(c, m, "task", "manager")
	dispatchTurn(c)
	frames := shown(c)
	if last := frames[len(frames)-1]; last.Kind != bus.FramePendingApproval || dataOf[bus.PendingApprovalData](t, last).Approval.Type != "skill.call" {
		t.Fatalf("ends with %+v", last)
	}
	of := ends(c)
	for _, a := range asks(c) {
		want := map[string]string{"shop": taskPendingApproval, "rewards": taskDone}[a.Agent]
		if of[a.TaskID].Status != want || of[a.Parent].Status != taskPendingApproval {
			t.Errorf("%s: %+v, of the asking task %+v", a.Agent, of[a.TaskID], of[a.Parent])
		}
	}
}

// TestAskGoesOn: after a task was killed, the next one repeats unanswered asks under the same
// call before it asks its model; it receives the answers that exist.
func TestAskGoesOn(t *testing.T) {
	c := newCore(t)
	asking(c, hub, others)
	before := func(call, agent, status string, result any) catalog.TranscriptCall {
		out := catalog.TranscriptCall{
			CallSummary: catalog.CallSummary{Step: 1, IntentID: intents.Digest([]byte(agent)), Call: call, Type: intents.TypeAgentAsk, Status: status},
			Args:        marshal(catalog.AgentAsk{Agent: agent, Input: agent + "?"}), Code: intents.OK,
		}
		if result != nil {
			out.Result = marshal(result)
		}
		return out
	}
	calls := []catalog.TranscriptCall{
		before("1.0", "shop", "done", map[string]string{"reply": "Ten percent."}), before("1.1", "rewards", catalog.AskInterrupted, nil), before("1.2", "support", catalog.AskUnavailable, nil),
	}
	c.on("transcript.get", done(catalog.TranscriptGetResult{Calls: calls}))
	m := says(map[string][]any{"hub": {ask("shop", "More?"), "All."}, "rewards": {"120 points."}, "shop": {"No."}})
	w := tasks(c, m)
	req := opened(c, w, time.Now().Add(time.Minute))
	req.Agent, req.Epoch, req.Step.Skills = "hub", 2, nil
	for _, call := range calls {
		req.Calls = append(req.Calls, call.CallSummary)
	}
	if got := w.run(t.Context(), req); got.Status != taskDone || got.Reply != "All." {
		t.Fatalf("%+v", got)
	}
	var paths []string
	for _, p := range c.ofType("agent.ask") {
		paths = append(paths, p.Call)
	}
	if all := asks(c); !slices.Equal(paths, []string{"1.1", "2.0"}) || all[0].Agent != "rewards" || all[0].Input != "rewards?" || all[0].Epoch != 2 {
		t.Errorf("asked %v %+v", paths, all)
	}
	want := []string{`{"text":"Ten percent."}`, `{"text":"120 points."}`, `{"status":"unavailable","about":"Support"}`}
	if d := gocmp.Diff(want, results(m.requests("hub")[0])); d != "" {
		t.Errorf("told (-want +got):\n%s", d)
	}
}
