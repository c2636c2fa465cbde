package agentic

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/visible"
	"aob.dev/writ/state/agents"
)

// An agent asks others by calls of its model. An asked agent works as one more task: with a key,
// a loop and limits of its own, and the tools of its own agent, but it cannot ask others. Such a
// task runs in the process of the asking task, so it takes none of the places for steps and needs
// no right to delegate. A crash ends all of them; the next task of the step asks again under the
// same call (resume.go), and the record has everything done for that call.

// maxAskTools bounds how many agents get a tool each, and how many one search returns. If there
// are more, the agent searches for one first.
const maxAskTools = 10

const askInput = `"input_text":{"type":"string","minLength":1,"maxLength":16384,"description":"all that the agent needs to know: it sees nothing of this conversation"}`

var (
	askSchema      = json.RawMessage(`{"type":"object","properties":{` + askInput + `},"required":["input_text"],"additionalProperties":false}`)
	askAgentSchema = json.RawMessage(`{"type":"object","properties":{"agent_name":{"type":"string","minLength":1,"maxLength":60},` + askInput + `},"required":["agent_name","input_text"],"additionalProperties":false}`)
)

var findAgentsTool = model.Tool{
	Name: "find_agents", Description: "Finds agents that can be asked by words of their names and descriptions, best first.",
	Schema: json.RawMessage(`{"type":"object","properties":{"query":{"type":"string","minLength":1,"maxLength":1000}},"required":["query"],"additionalProperties":false}`),
}

// mayAsk returns the agents that an agent is told it may ask: those it names. One that may ask any is
// not told of the built-in ones that are an example or work in the background.
func mayAsk(a *agents.Agent, others []catalog.OtherAgent) []catalog.OtherAgent {
	if len(a.SubAgents) > 0 {
		return others
	}
	return slices.DeleteFunc(slices.Clone(others), func(o catalog.OtherAgent) bool { return o.Agent == agents.Sample || o.Agent == agents.Dreaming })
}

// askTools are the tools by which the agent asks others: one for each agent that it names, or one
// for many; if it may ask any, one for all. The note lists these for its prompt: servers truncate
// the descriptions of tools.
func (w *worker) askTools(a *agents.Agent) (out []*tool, note string) {
	all := mayAsk(a, w.others)
	if len(a.SubAgents) > 0 && len(all) <= maxAskTools {
		for _, o := range all {
			out = append(out, w.askTool(model.Tool{Name: askToolName(o.Agent), Description: o.Description, Schema: askSchema}, o.Agent))
		}
		return out, ""
	}
	one := model.Tool{Name: agents.AskAgent, Description: "Asks another agent, and gives its answer.", Schema: askAgentSchema}
	if len(all) <= maxAskTools {
		note = "**" + agents.AskAgent + "** asks one of:"
		for _, o := range all {
			note += "\n  - " + o.Agent + ": " + strings.Join(strings.Fields(o.Description), " ")
		}
		return []*tool{w.askTool(one, "")}, note
	}
	one.Description += " " + findAgentsTool.Name + " finds one."
	return []*tool{w.askTool(one, ""), newTool(tool{Tool: findAgentsTool, call: called(func(_ context.Context, _ string, in catalog.FindArgs) (any, error) {
		found := foundAgents(all, in.Query)
		return foundOthers{found, Cut{More: len(found) < len(all)}}, nil
	})})}, ""
}

// foundOthers are agents as a model reads them.
type foundOthers struct {
	Agents []catalog.OtherAgent `json:"agents"`
	Cut
}

// askTool asks one agent; empty: the agent that a call names.
func (w *worker) askTool(t model.Tool, agent string) *tool {
	return newTool(tool{
		Tool: t,
		asks: func(args json.RawMessage) string { return cmp.Or(agent, decoded(args, &catalog.AskArgs{}).Agent) },
		call: called(func(ctx context.Context, _ string, in catalog.AskArgs) (any, error) {
			a, ok := w.otherAgent(cmp.Or(agent, in.Agent))
			if !ok {
				return nil, mistaken("agent_name: there is no agent %q to ask", in.Agent)
			}
			return w.ask(ctx, a, in.Input)
		}),
	})
}

// otherAgent returns an agent that may be asked; its display name is never empty.
func (w *worker) otherAgent(name string) (a catalog.OtherAgent, ok bool) {
	i := slices.IndexFunc(w.others, func(a catalog.OtherAgent) bool { return a.Agent == name })
	if i < 0 {
		return catalog.OtherAgent{Agent: name, DisplayName: name}, false
	}
	a = w.others[i]
	a.DisplayName = cmp.Or(a.DisplayName, name)
	return a, true
}

func askToolName(agent string) string { return "ask_" + agent }

// foundAgents returns the agents whose names or descriptions share words with a query, best
// matches first; without a match, all of them.
func foundAgents(all []catalog.OtherAgent, query string) []catalog.OtherAgent {
	hits := func(a catalog.OtherAgent) (n int) {
		text := strings.ToLower(a.Agent + " " + a.DisplayName + " " + a.Description)
		for _, word := range strings.Fields(strings.ToLower(query)) {
			if strings.Contains(text, word) {
				n++
			}
		}
		return n
	}
	found := slices.Clone(all)
	slices.SortStableFunc(found, func(a, b catalog.OtherAgent) int { return cmp.Compare(hits(b), hits(a)) })
	return found[:min(len(found), maxAskTools)]
}

// askResult is the result of an ask, as the asking model reads it. It omits why an agent is not
// available: the model could only repeat that to the user.
type askResult struct {
	Status     string          `json:"status,omitempty"` // askPartial, askUnavailable; empty: it answered
	About      string          `json:"about,omitempty"`  // what is missing, for people
	Text       string          `json:"text,omitempty"`
	Components json.RawMessage `json:"components,omitempty"`
}

const (
	askPartial     = "partial"              // some data was not available to it
	askUnavailable = catalog.AskUnavailable // it failed, timed out, or could not begin
)

// ask has another agent work on a part of the request. Nothing is retried.
func (w *worker) ask(ctx context.Context, a catalog.OtherAgent, input string) (any, error) {
	began := w.cfg.Now()
	w.say(progress{Agent: a.Agent, Ask: callOf(ctx)})
	var busy time.Duration
	reply, err := w.child(ctx, a, input, &busy)
	w.say(progress{Agent: a.Agent, Ask: callOf(ctx), Ended: true})
	switch {
	case codeOf(err) == intents.ApprovalRequired, passes(codeOf(err)):
		return nil, err
	case reply.Refused != nil:
		return nil, reply.Refused
	}
	w.cfg.CountAsk(a.Agent, w.cfg.Now().Sub(began), busy, failureOf(reply, err))
	if err == nil && reply.Status == taskDone {
		return askResultOf(catalog.StepFinish{Reply: reply.Reply, Components: reply.Components}, reply.Partial), nil
	}
	if err == nil {
		err = errors.New(reply.Reason)
	}
	w.cfg.Log.WarnContext(ctx, "an asked agent is unavailable", slog.String("plan_id", w.req.Turn.PlanID), slog.String("agent", a.Agent), slog.String("error", model.Detail(err)))
	errorEmit(ctx, w.cfg, a.Agent, axisFailed, true)
	return askResult{Status: askUnavailable, About: a.DisplayName}, nil
}

func askResultOf(f catalog.StepFinish, partly bool) askResult {
	h := askResult{Text: f.Reply}
	if f.Components != "" {
		h.Components = json.RawMessage(f.Components)
	}
	if partly {
		h.Status = askPartial
	}
	return h
}

// child runs the task of an asked agent to its end. A task that could not report its end is ended
// here, so that nobody waits for its deadline.
func (w *worker) child(ctx context.Context, a catalog.OtherAgent, input string, busy *time.Duration) (runReply, error) {
	key, err := intents.GenerateSigner(intents.RoleTask)
	if err != nil {
		return runReply{}, err
	}
	about := catalog.TurnContext{}
	if w.req.Turn.About != nil {
		about = catalog.TurnContext{Locale: w.req.Turn.About.Locale, Location: w.req.Turn.About.Location, TimeZone: w.req.Turn.About.TimeZone}
	}
	args := catalog.AgentAsk{
		Agent: a.Agent, Input: input, PlanID: w.req.Turn.PlanID, Epoch: w.req.Epoch, Parent: w.req.TaskID,
		Context: catalog.AskContext{EpisodeID: cmp.Or(w.req.Turn.SessionID, w.req.Turn.PlanID), Locale: about.Locale, Location: about.Location, PriorContext: w.req.Turn.prior(a.Agent)},
		TaskID:  intents.NewTimedID(intents.KindTask, w.cfg.Now()), Deadline: w.askUntil(a).UTC().Format(time.RFC3339Nano),
	}
	args.JWK = key.VerificationKey().ToJWK()
	args.JWK.Role = ""
	if args.PoP, err = intents.SignPoP(key, args); err != nil {
		return runReply{}, err
	}
	var opened catalog.AgentAskResult
	answer, err := w.submit(ctx, intents.TypeAgentAsk, args, &opened)
	if err != nil {
		return runReply{}, err
	}
	turn, told := w.req.Turn, detailsOf(answer)
	turn.About, turn.Transient, turn.History, turn.Images, turn.Before, turn.Prior = &about, catalog.Transient{}, nil, nil, nil, args.Context.PriorContext
	turn.Grant = w.submitter.grantOf(w.req.Turn)
	ask, step := callOf(ctx), w.req.Step
	step.Task, step.Skills = a.Agent, opened.Skills
	reply := w.tasks.work(atCall(ctx, ""), key, runRequest{
		Turn: turn, TaskID: args.TaskID, UserTask: input, Revision: w.req.Revision, Step: step, Agent: a.Agent, Deadline: args.Deadline, Ask: ask, Calls: told.Calls, Tokens: told.Tokens, definition: told.Agent, busy: busy,
		say: func(p progress) {
			p.Agent, p.Ask = a.Agent, ask
			w.say(p)
		},
	})
	if reply.Plan == nil {
		end := catalog.StepFinish{TaskID: args.TaskID, Status: catalog.AskUnavailable, Reason: visible.Cut(cmp.Or(reply.Reason, "the agent does not answer"), 1000)}
		if _, err := w.submit(atCall(ctx, ""), "step.finish", end, nil); err != nil {
			w.cfg.Log.WarnContext(ctx, "the task of an asked agent is not ended", slog.String("plan_id", args.PlanID), slog.String("error", err.Error()))
		}
	}
	return reply, nil
}

// askUntil returns the time limit for an agent that is asked now: it leaves the asking agent some
// time to answer.
func (w *worker) askUntil(a catalog.OtherAgent) time.Time {
	limit := w.cfg.Now().Add(time.Duration(min(a.TimeLimitSec, w.loop.agent.Limits.AskSeconds)) * time.Second)
	own, err := time.Parse(time.RFC3339Nano, w.req.Deadline)
	if last := own.Add(-w.loop.agent.Limits.Time() / 9); err == nil && last.Before(limit) {
		return last
	}
	return limit
}

// resumeAsks repeats the unanswered asks of earlier tasks of the step, all at once and under the
// same calls. It returns the result of each.
func (w *worker) resumeAsks(ctx context.Context, calls []catalog.TranscriptCall) map[string]func() (any, error) {
	out := map[string]func() (any, error){}
	var asking sync.WaitGroup
	for _, c := range calls { // of each path the state returns only the last one
		var a catalog.AgentAsk
		unanswered := c.Status == catalog.AskInterrupted || c.Status == taskPendingApproval
		if c.Type != intents.TypeAgentAsk || !unanswered || decoded(c.Args, &a).Agent == "" {
			continue
		}
		var result any
		var err error
		other, _ := w.otherAgent(a.Agent)
		out[c.Call] = func() (any, error) { return result, err }
		asking.Go(func() { result, err = w.ask(atCall(ctx, c.Call), other, a.Input) })
	}
	asking.Wait()
	return out
}

// askCall returns an ask as the model wrote it.
func (w *worker) askCall(a *catalog.AgentAsk) (name string, args any) {
	name = askToolName(a.Agent)
	if slices.ContainsFunc(w.loop.tools, func(t *tool) bool { return t.Name == name && t.asks != nil }) {
		return name, catalog.AskArgs{Input: a.Input}
	}
	return agents.AskAgent, catalog.AskArgs{Agent: a.Agent, Input: a.Input}
}

// earlierResult returns the result of an ask made by an earlier task.
func (w *worker) earlierResult(c catalog.TranscriptCall) askResult {
	var f catalog.StepFinish
	if c.Status == taskDone && decoded(c.Result, &f).Reply != "" {
		return askResultOf(f, false)
	}
	a, _ := w.otherAgent(decoded(c.Args, &catalog.AgentAsk{}).Agent)
	return askResult{Status: askUnavailable, About: a.DisplayName}
}

// noData reports whether an intent failed because its data was not available.
func noData(c intents.Code) bool {
	return c == intents.ExecutorFailed || c == intents.ExecutorTimeout || c == intents.DispatchUnavailable || c == intents.OversizedOutput
}
