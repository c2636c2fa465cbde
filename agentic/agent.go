package agentic

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/bus"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/visible"
	"aob.dev/writ/schemas"
	"aob.dev/writ/state/agents"
)

// modelOf returns the model that an agent names, or the default if there is none of that name.
func (c Config) modelOf(a *agents.Agent) model.Model {
	if m, ok := c.Models[a.Model]; ok {
		return m
	}
	return c.Model
}

// converse runs the agent of the plan until it has its reply.
func (w *worker) converse(ctx context.Context) error {
	agent, err := w.ownAgent(ctx)
	if err != nil {
		return err
	}
	if agent.Type == agents.Remote {
		return w.relay(ctx, agent)
	}
	tools, notes, err := w.agentTools(ctx, agent)
	if err != nil {
		return err
	}
	if agent.Has(searchTool.Name) {
		tools = append(tools, newTool(tool{Tool: searchTool, call: called(w.search)}))
	}
	if agent.Structured {
		result, err := outputTool(agent, func(args json.RawMessage) error {
			if len(args) > maxResponse {
				return mistaken("the result has more than %d bytes", maxResponse)
			}
			w.reply = string(compact(args))
			return nil
		})
		if err != nil {
			return err
		}
		tools = append(tools, result)
	}
	w.show = &tokens{show: func(d bus.ContentData) { w.say(progress{Text: &d}) }, now: w.cfg.Now}
	if w.req.Ask != "" { // concurrent tasks share what their asking task may say
		w.show.every = 10 * tokenTime
	}
	w.loop = &loop{
		seen:  w.takeSeen,
		model: w.cfg.modelOf(agent), log: w.cfg.Log, agent: agent, tools: w.watched(tools, agent), text: !agent.Structured,
		req:     request(agent, w.req.Soul, w.req.Turn, w.cfg.Now(), w.req.UserTask, notes...),
		isChild: w.req.Ask != "", step: w.place.Step, now: w.cfg.Now,
	}
	if w.loop.text {
		w.loop.on = w.show.take
	}
	if err := w.resume(ctx); err != nil {
		return err
	}
	text, err := w.loop.run(ctx)
	if wrong := (*outputError)(nil); errors.As(err, &wrong) {
		return &model.Error{Reason: "its result is not of the agent's form"}
	}
	if err == nil && !agent.Structured {
		w.show.flush(true)
		w.reply = visible.Cut(guarded(strings.TrimSpace(text)), maxResponse)
	}
	if err == nil && w.reply == "" {
		err = &model.Error{Reason: "the model answered without text"}
	}
	return err
}

// ownAgent returns the agent as it was when the plan began.
func (w *worker) ownAgent(ctx context.Context) (*agents.Agent, error) {
	got := w.req.definition
	if got == nil {
		got = new(catalog.AgentGetResult)
		if _, err := w.submit(ctx, "agent.get", catalog.AgentGet{}, got); err != nil {
			return nil, err
		}
	}
	agent, err := w.cfg.definition(*got)
	if err != nil {
		return nil, err
	}
	w.inTime(agent)
	w.others = got.Others
	if w.req.Ask != "" || w.req.Route != nil || len(mayAsk(agent, w.others)) == 0 { // an asked agent cannot ask others
		w.others, agent.SubAgents = nil, nil
		agent.Tools = slices.DeleteFunc(slices.Clone(agent.Tools), func(t agents.Tool) bool { return t.ID() == agents.AskAgent })
	}
	return agent, nil
}

// inTime ends an agent's time limit a little before the deadline, so that it can say what was done
// while its key is still valid.
func (w *worker) inTime(agent *agents.Agent) *agents.Agent {
	seconds := agent.Limits.Seconds
	if until, err := time.Parse(time.RFC3339Nano, w.req.Deadline); err == nil {
		seconds = min(seconds, int(until.Sub(w.cfg.Now())/time.Second)+1)
	}
	agent.Limits.Seconds = max(1, seconds*9/10)
	return agent
}

// definition parses the agent of a plan.
func (c Config) definition(got catalog.AgentGetResult) (*agents.Agent, error) {
	if got.Text == "" {
		return c.builtin(got.Agent), nil
	}
	return agents.Parse([]byte(got.Text))
}

// agentTools returns the skills that the agent may call, the tools for large results once there is
// one, and notes on them for its prompt. A skill that cannot be loaded is left out: its server may
// be down.
func (w *worker) agentTools(ctx context.Context, agent *agents.Agent) (all []*tool, notes []string, err error) {
	manifests, err := w.manifests(ctx, w.req.Step.Skills, catalog.MaxLoaded)
	if err != nil {
		return nil, nil, err
	}
	for i := range manifests {
		for _, t := range agent.Tools {
			if t.ID() == manifests[i].Name && t.Description != "" { // in addition to the tool's own
				manifests[i].Description = visible.Cut(manifests[i].Description, max(0, maxAbout-len(t.Description)-1)) + "\n" + t.Description
			}
		}
	}
	calculates := agent.Has(execPythonTool.Name)
	builtin := []*tool{
		newTool(tool{Tool: readLinesTool, usable: w.canRead, call: called(w.readLines)}),
		newTool(tool{Tool: execPythonTool, usable: func() bool { return calculates || w.hasLarge() || w.namesArtifact() }, call: called(w.python)}),
	}
	if len(w.others) > 0 {
		asks, note := w.askTools(agent)
		builtin, notes = append(asks, builtin...), append(notes, note)
	}
	builtin = append(builtin, w.ownTools(agent)...)
	taken := map[string]bool{finalResult: true, searchTool.Name: true, findToolsTool.Name: true}
	for _, t := range builtin {
		taken[t.Name] = true
	}
	w.req.Step.Skills = nil
	for i, name := range agents.WireNames(manifests, taken) {
		w.req.Step.Skills = append(w.req.Step.Skills, manifests[i].Name)
		all = append(all, w.skill(manifests[i], name))
	}
	notes = append(notes, effectsNote(all))
	if fixed := len(builtin) + 1; len(all)+fixed > maxTools { // with the result of a structured one
		if all, err = w.shelve(ctx, all, fixed); err != nil {
			return nil, nil, err
		}
	}
	return append(all, builtin...), notes, nil
}

// manifests loads skills, as many as that at once. A skill that cannot be loaded is left out.
func (w *worker) manifests(ctx context.Context, names []string, atOnce int) ([]catalog.Manifest, error) {
	return loadSkills(ctx, func(ctx context.Context, typ string, args, result any) error {
		_, err := w.submit(ctx, typ, args, result)
		return err
	}, w.cfg.Log, names, atOnce)
}

// canRead reports whether a result is not whole in the conversation.
func (w *worker) canRead() bool {
	return w.hasLarge() || w.namesArtifact() || w.loop != nil && len(w.loop.short) > 0
}

// hasLarge reports whether a result has come by reference.
func (w *worker) hasLarge() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range w.material {
		if m.ref != nil {
			return true
		}
	}
	return false
}

// finalResult is the tool whose arguments are the result of a structured agent.
const finalResult = "final_result"

// outputTool accepts the result of a structured agent.
func outputTool(a *agents.Agent, take func(args json.RawMessage) error) (*tool, error) {
	schema := a.OutputSchema()
	check, err := schemas.Compile(schema)
	if err != nil {
		return nil, err
	}
	return &tool{
		Tool:  model.Tool{Name: finalResult, Description: "Ends your work with the result.", Schema: schema},
		check: check, output: true,
		call: func(_ context.Context, _ string, args json.RawMessage) (any, error) { return nil, take(args) },
	}, nil
}
