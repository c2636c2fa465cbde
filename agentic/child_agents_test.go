package agentic

import (
	"context"
	"encoding/json"
	"fmt"
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
)

// TestChildAgentFails: however an asked agent fails, the asking agent receives one word and the
// missing part, the others continue, nothing is retried, and a task that could not end itself is
// ended.
func TestChildAgentFails(t *testing.T) {
	hangs := func(ctx context.Context) any { <-ctx.Done(); return ctx.Err() }
	slow := slices.Clone(others)
	slow[0].TimeLimitSec = 1
	for name, tt := range map[string]struct {
		shop   []any
		refuse intents.Code // of agent.ask
		end    string       // of its task; empty: there is none
		error  string       // of the figures
	}{
		"an error of its model": {[]any{&model.Error{Reason: "Traceback: boom"}}, "", taskFailed, "failed"},
		"a model that hangs":    {[]any{hangs}, "", catalog.AskUnavailable, "timeout"},
		"denied":                {nil, intents.RBACForbidden, "", "refused"},
		"too many of them":      {nil, intents.MalformedArgs, "", "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCore(t)
			asking(c, hub, slow)
			granted := c.reply["agent.ask"]
			c.on("agent.ask", func(p placed) *intents.Answer {
				if strings.Contains(string(p.Args), `"agent":"shop"`) && tt.refuse != "" {
					return refuse(tt.refuse, "no")(p)
				}
				return granted(p)
			})
			finished := c.reply["step.finish"]
			c.on("step.finish", func(p placed) *intents.Answer {
				if p.Place.Ask != "" && tt.end == catalog.AskUnavailable && strings.Contains(string(p.Args), `"failed"`) {
					return refuse(intents.KeyRevoked, "its time is over")(p)
				}
				return finished(p)
			})
			m := says(map[string][]any{
				"hub":  {[]model.Call{ask("shop", "Offers?"), ask("rewards", "Points?")}, "120 points. The shop cannot be reached."},
				"shop": tt.shop, "rewards": {"120 points."},
			})
			var counts syncBuffer
			asked := func(agent string, took, busy time.Duration, failure string) {
				if busy < 0 || busy > took || (busy == 0) != (failure == "refused") {
					t.Errorf("%s was busy for %s of %s", agent, busy, took)
				}
				fmt.Fprintf(&counts, "%s:%s ", agent, failure)
			}
			frames, log := managedBy(c, m, asked)
			told := results(m.requests("hub")[1])
			if told[0] != `{"status":"unavailable","about":"Shop"}` || told[1] != `{"text":"120 points."}` {
				t.Errorf("told %q", told)
			}
			var own []string
			for _, p := range c.ofType("step.finish") {
				var f catalog.StepFinish
				_ = json.Unmarshal(p.Args, &f)
				if f.Status != taskDone {
					own = append(own, f.Status)
				}
			}
			if tt.end != "" && (len(own) == 0 || own[len(own)-1] != tt.end) || tt.end == "" && own != nil {
				t.Errorf("ends %v", own)
			}
			if n := len(m.requests("shop")); n > 1 {
				t.Errorf("shop was asked %d times", n)
			}
			if got := strings.Fields(counts.String()); len(got) != 2 || !slices.Contains(got, "shop:"+tt.error) || !slices.Contains(got, "rewards:") {
				t.Errorf("counted %q", got)
			}
			if !strings.Contains(log, "outcomes.shop=failure outcomes.rewards=success") || !strings.Contains(log, "msg=agent.error_emit sub_agent_id=hub axis=3 is_final=true") {
				t.Errorf("log\n%s", log)
			}
			for _, f := range frames {
				if s := string(f.Data); strings.Contains(s, "boom") || strings.Contains(s, "RBAC") {
					t.Errorf("shown %s", s)
				}
			}
		})
	}
}

// TestNoData: an asked agent learns that data is not available and continues, and the asking
// agent learns that the answer is partial. Its status is shown in the asking agent's words.
func TestNoData(t *testing.T) {
	c := newCore(t)
	asking(c, hub+"status_events: {looking_up: {words: {en: Looking}}}\n", others)
	c.on("skill.call", outcome(intents.ExecutorFailed, intents.Failed, false))
	m := says(map[string][]any{
		"hub":  {ask("shop", "Offers?"), "I have a part of it."},
		"shop": {call("crm_list", struct{}{}), "I cannot see the offers now."},
	})
	frames, log := played(c, m)
	if !slices.ContainsFunc(frames, func(f bus.TurnFrame) bool {
		return f.Kind == bus.FrameStatus && dataOf[bus.StatusData](t, f).Message == "Looking"
	}) {
		t.Errorf("no status of shop among %+v", frames)
	}
	if got := results(m.requests("shop")[1]); len(got) != 1 || !strings.HasPrefix(got[0], `{"reason":"data unavailable: `) || strings.Contains(got[0], "EXECUTOR_FAILED") {
		t.Errorf("shop is told %q", got)
	}
	if got := results(m.requests("hub")[1]); len(got) != 1 || got[0] != `{"status":"partial","text":"I cannot see the offers now."}` {
		t.Errorf("hub is told %q", got)
	}
	if !strings.Contains(log, "outcomes.shop=error") || !strings.Contains(log, "msg=agent.error_emit sub_agent_id=shop axis=2 is_final=false") {
		t.Errorf("log\n%s", log)
	}
	if d := gocmp.Diff(map[string]int{"intents 1": 1, "cap within": 1, "outcome error": 1, "axis 2": 1, "status shown": 1}, c.figures()); d != "" {
		t.Errorf("figures (-want +got):\n%s", d)
	}
}

// TestChildAgentsHaveRoom: when asking agents take every place for tasks, the agents that they
// ask run nevertheless.
func TestChildAgentsHaveRoom(t *testing.T) {
	c := newCore(t)
	asking(c, hub, others)
	mine := len(filled(NewTasks(Config{}).steps, theTurn.Tenant, ""))
	all := newMeeting(mine)
	m := says(map[string][]any{"hub": nil, "shop": {all.reply("Ten percent.")}})
	w := tasks(c, askingOnce{m})
	var running sync.WaitGroup
	for i := range mine {
		step := ofStep(time.Now().Add(time.Minute))
		step.TaskID = fmt.Sprintf("task_%d", i)
		r := w.prepare(t.Context(), taskRequest{step})
		c.mu.Lock()
		c.admit(r.Step)
		c.mu.Unlock()
		running.Go(func() {
			got := w.run(t.Context(), runRequest{Turn: c.turn(), TaskID: step.TaskID, UserTask: "Ask.", Step: catalog.PlanStep{Step: 1}, Agent: "hub", Epoch: 1, Deadline: step.Deadline})
			if got.Reply != "Ten percent." {
				t.Errorf("%+v", got)
			}
		})
	}
	running.Wait()
}

// askingOnce is a script whose hub asks the shop and repeats its answer.
type askingOnce struct{ *script }

func (m askingOnce) Respond(ctx context.Context, req model.Request, on func(model.Event)) (*model.Response, error) {
	switch told := results(req); {
	case req.Agent != "hub":
		return m.script.Respond(ctx, req, on)
	case len(told) == 0:
		c := ask("shop", "Offers?")
		c.ID = "call_1"
		return &model.Response{Calls: []model.Call{c}}, nil
	default:
		return &model.Response{Text: decoded(json.RawMessage(told[0]), &askResult{}).Text}, nil
	}
}

// TestRender: a call of a render tool is no intent: its arguments appear beside the answer,
// within bounds, and in the answer to the asking agent.
func TestRender(t *testing.T) {
	c := newCore(t)
	asking(c, hub+"tools: [{server: crm, name: render_card}]\n", others)
	c.on("skill.load", func(p placed) *intents.Answer {
		if strings.Contains(string(p.Args), "gone") {
			return refuse(intents.PolicyDenied, "not approved")(p)
		}
		return done(catalog.Manifest{Name: "crm.render_card", Endpoint: "crm", InputSchema: json.RawMessage(`{"type":"object","properties":{"title":{"type":"string"}},"required":["title"]}`), Effect: catalog.Pure})(p)
	})
	card := call("render_card", map[string]string{"title": "T"})
	m := says(map[string][]any{
		"hub":  {[]model.Call{ask("shop", "Offers?"), card, call("render_card", map[string]int{"no": 1}), call("render_card", map[string]string{"title": strings.Repeat("x", maxComponents)})}, "See the card."},
		"shop": {card, "Ten percent."},
	})
	frames, _ := played(c, m)
	want := `[{"name":"render_card","props":{"title":"T"}}]`
	for task, f := range ends(c) {
		if f.Components != want {
			t.Errorf("step.finish of %s: %+v", task, f)
		}
	}
	if n := len(c.ofType("skill.call")); n != 0 {
		t.Errorf("%d calls of skills", n)
	}
	told := results(m.requests("hub")[1])
	if told[0] != `{"text":"Ten percent.","components":`+want+`}` || !strings.Contains(told[2], "violations") || !strings.Contains(told[3], "at most 16384 bytes") {
		t.Errorf("told %q", told)
	}
	for _, f := range frames {
		if f.Kind == bus.FrameAnswer && string(dataOf[bus.AnswerData](t, f).Components) != want {
			t.Errorf("answer %s", f.Data)
		}
	}
}

// TestChildAgentText: the asking task gets the agent's text with the answer to agent.ask, so the
// asked task begins at once; otherwise it requests the text.
func TestChildAgentText(t *testing.T) {
	for name, told := range map[string]*catalog.AgentGetResult{
		"told": {Agent: "shop", Text: "name: shop\ndescription: Answers.\ninstructions: You were told.\nsub_agents: [hub]\n", TimeLimitSec: 300}, "not told": nil,
	} {
		t.Run(name, func(t *testing.T) {
			c := newCore(t)
			asking(c, hub, others)
			granted := c.reply["agent.ask"]
			c.on("agent.ask", func(p placed) *intents.Answer {
				a := granted(p)
				a.Details = marshal(catalog.PlanDetails{Agent: told})
				return a
			})
			m := says(map[string][]any{"hub": {ask("shop", "Offers?"), "Ten percent."}, "shop": {"Ten."}})
			played(c, m)
			gets := 0
			for _, p := range c.ofType("agent.get") {
				if p.Place.Ask != "" {
					gets++
				}
			}
			system := m.requests("shop")[0].System
			if want := told == nil; want != (gets == 1) || want == strings.Contains(system, "You were told.") || strings.Contains(system, "Sub-agents") {
				t.Errorf("%d agent.get, prompt %q", gets, system)
			}
		})
	}
}

// TestAskVerbatim: the answer of an asked agent may be the final answer word for word, but only
// as text of the asking agent: with the persona of the tenant, which the asked one does not have,
// and through the check of texts for people.
func TestAskVerbatim(t *testing.T) {
	const answerText = "Ten percent off, until Friday."
	c := newCore(t)
	asking(c, hub, others)
	c.on("soul.get", done(catalog.Soul{UserID: "ana", Persona: &catalog.Persona{Name: "Ada", SystemPrompt: "You speak like a pilot.", Tone: "calm", Language: "de"}}))
	m := says(map[string][]any{"hub": {ask("shop", "Offers?"), answerText + " RBAC_FORBIDDEN"}, "shop": {answerText + " RBAC_FORBIDDEN"}})
	played(c, m)
	if got := closed(c).Response; got != answerText+" "+intents.RBACForbidden.Info().Title {
		t.Errorf("answer %q", got)
	}
	if last := m.requests("hub")[1]; !strings.Contains(last.System, "You speak like a pilot.") || !strings.Contains(last.System, "as one answer of your own") || !strings.Contains(results(last)[0], answerText) {
		t.Errorf("hub composes from %q, %q", last.System, results(last))
	}
	if strings.Contains(m.requests("shop")[0].System, "pilot") {
		t.Error("the asked agent has the persona, too")
	}
}
