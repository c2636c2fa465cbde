package router_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/blobdir"
)

const desk = `name: desk
description: Knows whom to ask.
tools: [{server: crm, name: list}]
sub_agents: [spoons, knives]
limits: {max_fan_out: 2, request_limit: 3}
`

const spoons = `name: spoons
description: Knows spoons.
tools: [{server: spoon, name: buy}, {name: ask_agent}]
`

const knives = `name: knives
description: Knows knives.
tools: [{server: spoon, name: buy}]
limits: {time_limit_sec: 40}
`

// asking is a world with a plan of desk, and its task.
func asking(t *testing.T) (*routertest.World, *routertest.Plan, *routertest.Task) {
	t.Helper()
	return askingOf(t, routertest.Options{})
}

func askingOf(t *testing.T, options routertest.Options) (*routertest.World, *routertest.Plan, *routertest.Task) {
	t.Helper()
	w := routertest.New(t, options)
	people(w)
	w.Pin("crm.list", catalog.Pure)
	w.Pin("spoon.buy", catalog.Once)
	w.Data("approval", `{"once":false}`)
	w.PushAgents(1, map[string]string{"desk": desk, "spoons": spoons, "knives": knives})
	p := w.BegunAgent("p", "desk")
	return w, p, p.Started(1)
}

// callStatuses are the calls in the answer of a transition, by path.
func callStatuses(t *testing.T, a *intents.Answer) map[string]string {
	t.Helper()
	var got catalog.PlanDetails
	if err := json.Unmarshal(a.Details, &got); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, c := range got.Calls {
		out[c.Call] = c.Type + " " + c.Status
	}
	return out
}

// TestAsk: the task of an agent's plan asks another agent in one of its calls. The asked task has
// its agent's skills and no others, asks nobody, and its reply is not the plan's answer.
func TestAsk(t *testing.T) {
	w, p, task := asking(t)
	o, child := task.AskIntent("spoons", "1.0", nil)
	asked := w.Want(w.Do(o), intents.OK)
	got := routertest.Result[catalog.AgentAskResult](w, asked)
	if d := cmp.Diff(catalog.AgentAskResult{TaskID: child.TaskID, Skills: []string{"spoon.buy"}}, got); d != "" {
		t.Error(d)
	}
	again, other := task.AskIntent("spoons", "1.0", nil)
	if a := w.Want(w.Do(again), intents.OK); !a.Replayed || routertest.Result[catalog.AgentAskResult](w, a).TaskID != child.TaskID {
		t.Errorf("the same ask with another key: %+v", a)
	}
	w.Want(other.Reply("Here."), intents.KeyUnknown)

	agent := routertest.Result[catalog.AgentGetResult](w, w.Want(w.Do(child.Intent("agent.get", catalog.AgentGet{})), intents.OK))
	var told catalog.PlanDetails
	w.Must(json.Unmarshal(asked.Details, &told))
	if d := cmp.Diff(&agent, told.Agent); d != "" {
		t.Errorf("who asks is told of the agent (-agent.get +told):\n%s", d)
	}
	if agent.Agent != "spoons" || agent.Text != spoons || agent.TimeLimitSec != 300 {
		t.Errorf("the agent of the asked task: %+v", agent)
	}
	buys := child.CallIntent("spoon.buy", `{}`)
	buys.Ctx.Call = "1.0"
	w.Want(w.Do(buys), intents.OK)
	calls := w.Bus.Calls("skill.call")
	if s := calls[len(calls)-1].Ticket.Scope; s.Ask != "1.0" || s.Task != child.TaskID || !cmp.Equal(s.Skills, []string{"spoon.buy"}) {
		t.Errorf("the ticket's scope: %+v", s)
	}
	refused(t, child.Call("crm.list", `{}`), intents.TaskScope, "not among those")
	elsewhere := child.CallIntent("spoon.buy", `{}`)
	elsewhere.Ctx.Ask = "1.1"
	refused(t, w.Do(elsewhere), intents.TaskScope, "not the call")
	asks, _ := child.AskIntent("knives", "2.0", nil)
	refused(t, w.Do(asks), intents.TaskScope, "no tool for this")
	refused(t, child.Finish(catalog.AskUnavailable, "", "no"), intents.MalformedArgs, "only the task that asked")
	refused(t, child.Finish("held", "", "no"), intents.MalformedArgs, "no intent of this step waits")

	used := catalog.Usage{Agent: "spoons", Model: "m", Calls: 2, InputTokens: 10, OutputTokens: 3}
	said := w.Want(w.Do(child.Intent("step.finish", catalog.StepFinish{TaskID: child.TaskID, Status: "done", Reply: "Two spoons.", Usage: []catalog.Usage{used}})), intents.OK)
	refused(t, w.Erase(asked, catalog.ErasesEnvelope), intents.MalformedArgs, "plan has not ended")
	if v := p.View(); v.Response != "" || v.Steps[0].Status != catalog.StepRunning || !cmp.Equal(v.Usage, []catalog.Usage{used}) {
		t.Errorf("the plan after the asked agent has answered: %+v", v)
	}
	w.Want(task.Call("crm.list", `{}`), intents.OK)
	w.Want(task.Reply("Spoons, two."), intents.OK)
	close := catalog.PlanClose{PlanID: p.ID, Epoch: p.Epoch, Status: "complete", Response: "Spoons, two."}
	w.Want(w.Do(routertest.Intent{By: w.Manager, Type: "plan.close", Args: close, Ctx: intents.Context{PlanID: p.ID}}), intents.OK)
	for _, a := range []*intents.Answer{asked, said} {
		w.Want(w.Erase(a, catalog.ErasesEnvelope), intents.OK)
	}
	if where := slices.Concat(inRecords(w, "Which, in 1.0?"), inRecords(w, "Two spoons.")); len(where) > 0 {
		t.Errorf("still in %v", where)
	}
	checkRebuilt(w)
	w.Restart()
}

// TestMayAsk: the router judges who asks whom, for how long, how many and as which call, whoever
// signs.
func TestMayAsk(t *testing.T) {
	w, p, task := asking(t)
	refuses := func(code intents.Code, reason, agent, call string, change func(*routertest.Task, *catalog.AgentAsk)) {
		t.Helper()
		o, _ := task.AskIntent(agent, call, change)
		refused(t, w.Do(o), code, reason)
	}
	until := func(d time.Duration) func(*routertest.Task, *catalog.AgentAsk) {
		return func(_ *routertest.Task, a *catalog.AgentAsk) { a.Deadline = w.Clock.Now().Add(d).Format(time.RFC3339) }
	}
	refuses(intents.TaskScope, "did you mean spoons?", "spoon", "1.0", nil)
	refuses(intents.TaskScope, "not one of the agents that desk may ask", "general", "1.0", nil)
	refuses(intents.MalformedArgs, "an ask says which call it is", "spoons", "", nil)
	refuses(intents.MalformedArgs, "may take 60 s", "spoons", "1.0", until(70*time.Second))
	refuses(intents.MalformedArgs, "may take 40 s", "knives", "1.0", until(50*time.Second))
	refuses(intents.MalformedArgs, "another driver", "spoons", "1.0", func(_ *routertest.Task, a *catalog.AgentAsk) { a.Epoch++ })
	refuses(intents.MalformedArgs, "no such task", "spoons", "1.0", func(_ *routertest.Task, a *catalog.AgentAsk) { a.Parent = a.TaskID })
	refuses(intents.MalformedArgs, "no such task", "spoons", "1.0", func(_ *routertest.Task, a *catalog.AgentAsk) { a.PlanID = routertest.PlanID("q") })
	refuses(intents.MalformedArgs, "a task with this id exists", "spoons", "1.0", func(_ *routertest.Task, a *catalog.AgentAsk) { a.TaskID = task.TaskID })
	refuses(intents.MalformedArgs, "another task", "spoons", "1.0", func(child *routertest.Task, _ *catalog.AgentAsk) { child.Key = task.Key })
	for _, wrong := range []catalog.AskContext{{}, {EpisodeID: "s", PriorContext: strings.Repeat("x", 2049)}} {
		refuses(intents.SchemaInvalid, "", "spoons", "1.0", func(_ *routertest.Task, a *catalog.AgentAsk) { a.Context = wrong })
	}
	o, _ := task.AskIntent("spoons", "1.0", nil)
	a, _ := o.Args.(catalog.AgentAsk)
	a.Input = "Something else?"
	o.Args = a
	if got := w.Do(o); got.Code == intents.OK {
		t.Error("the proof of possession does not cover the input")
	}
	w.Want(w.Admin("admin.put", catalog.AdminPut{Tenant: "default", Role: &catalog.RoleData{Role: "clerk", Capabilities: []string{"plans:*", "agents:run:knives"}}}), intents.OK)
	o, _ = task.AskIntent("spoons", "1.0", nil)
	o.Roles = []string{"clerk"}
	refused(t, w.Do(o), intents.RBACForbidden, "agents:run:spoons")
	q := w.BegunAgent("q", "spoons")
	stranger := q.Started(1)
	o, _ = stranger.AskIntent("desk", "1.0", func(_ *routertest.Task, a *catalog.AgentAsk) { a.Parent, a.PlanID = task.TaskID, p.ID })
	refused(t, w.Do(o), intents.TaskScope, "not the key's own task")

	first := task.MustAsk("spoons", "1.0")
	refuses(intents.MalformedArgs, "an agent was asked by this call", "spoons", "1.0", func(_ *routertest.Task, a *catalog.AgentAsk) { a.Input = "Which else?" })
	second := task.MustAsk("knives", "1.1")
	refuses(intents.MalformedArgs, "2 asked agents live", "spoons", "1.2", nil)
	w.Want(first.Reply("These."), intents.OK)
	refuses(intents.MalformedArgs, "an agent was asked by this call", "spoons", "1.0", func(_ *routertest.Task, a *catalog.AgentAsk) { a.Input = "Which else?" })
	w.Want(second.Finish("failed", "", "no"), intents.OK)
	third := task.MustAsk("spoons", "1.2")
	w.Want(third.Reply("Those."), intents.OK)
	refuses(intents.MalformedArgs, "the step has asked 3 times", "spoons", "2.0", nil)

	// The asking task's deadline bounds that of the asked one.
	w.Clock.Move(4*time.Minute + 30*time.Second)
	refuses(intents.MalformedArgs, "ends before", "spoons", "2.0", until(50*time.Second))
	w.Restart()
}

// TestAskAnyAgent: an agent with ask_agent asks every local agent of the registry but itself.
func TestAskAnyAgent(t *testing.T) {
	w, _, _ := asking(t)
	task := w.BegunAgent("q", "spoons").Started(1)
	for i, agent := range []string{"desk", "general", "knives"} {
		child := task.MustAsk(agent, fmt.Sprintf("1.%d", i))
		if agent == "desk" { // although it asks others as the agent of a plan
			asks, _ := child.AskIntent("spoons", "1.0", nil)
			refused(t, w.Do(asks), intents.TaskScope, "no tool for this")
		}
	}
	for _, agent := range []string{"spoons", "planner"} {
		o, _ := task.AskIntent(agent, "2.0", nil)
		refused(t, w.Do(o), intents.TaskScope, "not one of the agents")
	}
}

// TestAskIsHeld: a held ask opens its task once it is approved, if the asking task still lives.
func TestAskIsHeld(t *testing.T) {
	w := rules(t, `{"id": "ext.ours", "reason": "We want to know.", "approvers": ["ben"]} if input.intent.type == "agent.ask"`)
	w.PushAgents(1, map[string]string{"desk": desk, "spoons": spoons, "knives": knives})
	p := w.BegunAgent("p", "desk")
	task := p.Started(1)
	o, child := task.AskIntent("spoons", "1.0", nil)
	x := releaseWorld{w, task, w.Want(w.Do(o), intents.ApprovalRequired)}
	w.Want(child.Reply("Two."), intents.KeyUnknown)
	refused(t, w.Do(x.edits("ben", `{}`)), intents.MalformedArgs, "an intent that opens a task cannot be edited")
	w.Want(x.says("ben", catalog.DecisionApprove), intents.OK)
	w.Want(x.outcome(), intents.OK)
	w.Want(child.Reply("Two."), intents.OK)

	o, _ = task.AskIntent("spoons", "1.1", nil)
	x.held = w.Want(w.Do(o), intents.ApprovalRequired)
	w.Want(p.Claim(), intents.OK)
	next := p.NewTask(1)
	want := map[string]string{"1.0": "agent.ask done", "1.1": "agent.ask held"}
	if d := cmp.Diff(want, callStatuses(t, w.Want(w.Do(p.StepIntent(next.StepArgs())), intents.OK))); d != "" {
		t.Error(d)
	}
	if got := x.state(x.says("ben", catalog.DecisionApprove)); got.State != catalog.ApprovalEnded || got.Code != intents.KeyRevoked {
		t.Errorf("approved although the task that asked has ended: %+v", got)
	}
	w.Restart()
}

// TestAsksAtOnce: concurrent asks are accepted only up to the number that may live.
func TestAsksAtOnce(t *testing.T) {
	w, _, task := asking(t)
	var codes sync.Map
	var all sync.WaitGroup
	for i := range 6 {
		o, _ := task.AskIntent("spoons", fmt.Sprintf("1.%d", i), nil)
		raw := w.Sign(o)
		all.Go(func() {
			a, err := w.Router.Submit(t.Context(), raw)
			if err != nil {
				t.Error(err)
				return
			}
			codes.Store(i, a.Code)
		})
	}
	all.Wait()
	got := map[intents.Code]int{}
	codes.Range(func(_, code any) bool {
		c, _ := code.(intents.Code)
		got[c]++
		return true
	})
	if want := map[intents.Code]int{intents.OK: 2, intents.MalformedArgs: 4}; !cmp.Equal(want, got) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestAskSubjects: an ask does not affect the intents of other asked tasks; another ask, and an end
// of the asking task, are decided again. The end of the asking task makes the intents of those that
// it has asked for stale.
func TestAskSubjects(t *testing.T) {
	w, p, task := asking(t)
	child := task.MustAsk("spoons", "1.0")
	judge := func(by *routertest.Task, typ string, args any) (*state.View, []storage.Subject) {
		t.Helper()
		raw, err := json.Marshal(args)
		w.Must(err)
		v := w.Dir.View()
		e, err := v.Judge(state.Intent{
			Type: typ, Args: raw, Tenant: "default", User: p.User, Signer: intents.RoleTask, Now: w.Clock.Now(),
			Context: intents.Context{PlanID: p.ID, Step: 1, TaskID: by.TaskID, Ask: by.Ask, Call: "1.1"},
		}, nil)
		w.Must(err)
		return v, e.Writes
	}
	intent := w.Dir.View() // of the asked task, as the stages of a router read
	intent.Task("default/" + child.TaskID)
	intent.PlanInput("default", p.ID)
	w.Must(intent.CheckRepeat("default", intents.RoleTask, "skill.call", []byte(`{}`), intents.Context{PlanID: p.ID, Step: 1, Ask: "1.0"}, true))
	o, _ := task.AskIntent("spoons", "1.1", nil)
	ask, asks := judge(task, intents.TypeAgentAsk, o.Args)
	parent, ends := judge(task, "step.finish", catalog.StepFinish{TaskID: task.TaskID, Status: "done", Reply: "These."})
	_, answers := judge(child, "step.finish", catalog.StepFinish{TaskID: child.TaskID, Status: "done", Reply: "These."})
	for name, tt := range map[string]struct {
		reads  *state.View
		writes []storage.Subject
		stale  bool
	}{
		"an intent of an asked task, when another is asked":    {intent, asks, false},
		"an intent of an asked task, when the asker ends":      {intent, ends, true},
		"an ask, when another is made":                         {ask, asks, true},
		"an ask, when an asked task ends":                      {ask, answers, true},
		"an ask, when the asker ends":                          {ask, ends, true},
		"the end of the asker, when another is asked":          {parent, asks, true},
		"the end of the asker, when an asked task ends before": {parent, answers, true},
	} {
		if got := slices.ContainsFunc(tt.writes, tt.reads.HasRead); got != tt.stale {
			t.Errorf("%s: stale %t, touches %v, asserts %v", name, got, tt.writes, tt.reads.Asserts())
		}
	}
}

// TestFilesOfAsks: the files of an asked task are its own, and are removed with it.
func TestFilesOfAsks(t *testing.T) {
	blobs, err := blobdir.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w, p, task := askingOf(t, routertest.Options{Blobs: blobs})
	put := func(ask string) (there func() bool, id string) {
		s := storage.Scope{Tenant: "default", Plan: p.ID, Step: 1, Ask: ask}
		f, err := blobs.Put(t.Context(), s, strings.NewReader("x"))
		w.Must(err)
		return func() bool {
			r, _, err := blobs.Open(t.Context(), s, f.ID)
			if err != nil {
				return false
			}
			w.Must(r.Close())
			return true
		}, f.ID
	}
	first, second := task.MustAsk("spoons", "1.0"), task.MustAsk("knives", "1.1")
	ofStep, _ := put("")
	ofFirst, id := put("1.0")
	ofSecond, _ := put("1.1")
	w.OK(first.Intent("exec_python", catalog.ExecPython{Script: "1", From: id}))
	refused(t, w.Do(second.Intent("exec_python", catalog.ExecPython{Script: "1", From: id})), intents.MalformedArgs, "names nothing")
	w.Want(first.Reply("These."), intents.OK)
	if ofFirst() || !ofSecond() || !ofStep() {
		t.Error("not the files of the asked task alone went with it")
	}
	w.Want(w.Do(task.Intent("step.finish", catalog.StepFinish{TaskID: second.TaskID, Status: catalog.AskUnavailable, Reason: "hangs"})), intents.OK)
	if ofSecond() || !ofStep() {
		t.Error("not the files of the task alone that has no answer went")
	}
}

// TestJudgedBesideRecords: an agent is read while records are applied, without a deadlock.
func TestJudgedBesideRecords(t *testing.T) {
	w, p, _ := asking(t)
	ctx, stop := context.WithCancel(t.Context())
	var applying sync.WaitGroup
	applying.Go(func() {
		for ctx.Err() == nil {
			w.Dir.ForgetErasures() // locks the state as a record does
		}
	})
	for range 200 {
		_, err := w.Dir.View().Judge(state.Intent{Type: "agent.get", Args: []byte(`{}`), Tenant: "default", User: p.User, Context: intents.Context{PlanID: p.ID}}, nil)
		w.Must(err)
	}
	stop()
	applying.Wait()
}
