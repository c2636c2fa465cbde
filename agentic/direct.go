package agentic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/bus"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/visible"
	"aob.dev/writ/state/agents"
)

// A request that only needs something looked up takes two requests to a model: the planner's
// first reply calls skills, and the next reply, which has their results, is the answer.
//
// The planner executes no call. It signs a plan of one step, and the step's task carries the
// conversation on: it makes the calls of that reply, and those of later replies, with its own
// key, until a reply is text. Only skills that the operator made pure are offered. If a later
// reply plans, because something is to be changed, the step ends without a result, and that plan
// becomes the next revision: it may use only skills that were ranked before any result was read.
//
// Crash: the conversation is not recorded. The step of a plan that another driver continues is
// carried out as any other, from the calls that were made.

// A first request has the schemas of the best-ranked skills: of as many pure ones, which are tools,
// and of those that change something among as many.
const (
	ranked     = 8
	candidates = 20 // that are loaded to find them
)

// direct is the conversation that a task takes over.
type direct struct {
	Message string   `json:"message"` // of the user, as the planner's model read it
	Skills  []string `json:"skills"`  // ranked before any result
	// Others are agents that a plan may name.
	Others []catalog.OtherAgent `json:"others,omitempty"`
	// Reply is the first reply, whose calls the task makes.
	Reply model.Response `json:"reply"`
}

// errHandover ends the planner's run: its last reply calls skills.
var errHandover = errors.New("the calls are those of a task")

// handsOver reports whether a reply calls a skill that a task must call.
func (l *loop) handsOver(calls []model.Call) bool {
	return slices.ContainsFunc(calls, func(c model.Call) bool {
		return slices.ContainsFunc(l.offered, func(t *tool) bool { return t.handover && t.Name == c.Name })
	})
}

// builtinNames are the names of the planner's own tools, and of those that a task has beside the
// skills: the skills have the same names in both.
var builtinNames = map[string]bool{findSkillsTool.Name: true, loadSkillTool.Name: true, planTool.Name: true, readLinesTool.Name: true, execPythonTool.Name: true}

// offer loads the best-ranked of the skills that were found, and returns tools for the pure ones,
// with their ids.
func (w *planning) offer(ctx context.Context, found []catalog.SkillHit) (tools []*tool, ids []string, err error) {
	var names []string
	for _, s := range found[:min(len(found), candidates)] {
		names = append(names, s.Name)
	}
	if err := w.loadNew(ctx, names); err != nil {
		return nil, nil, err
	}
	var pure []catalog.Manifest
	for _, name := range names {
		if m, ok := w.loaded[name]; ok && m.Effect == catalog.Pure && !renders(m) && len(pure) < ranked {
			pure, ids = append(pure, m), append(ids, name)
		}
	}
	slices.SortFunc(pure, func(a, b catalog.Manifest) int { return strings.Compare(a.Name, b.Name) }) // whatever their rank
	slices.Sort(ids)
	for i, name := range agents.WireNames(pure, builtinNames) {
		tools = append(tools, &tool{Tool: skillTool(pure[i], name), handover: true})
		w.offered[name] = ids[i]
	}
	if len(tools) > 0 {
		tools = append(tools, newTool(tool{Tool: execPythonTool, handover: true}))
	}
	return tools, ids, nil
}

// handOver signs the plan of one step whose task makes the calls of the last reply.
func (w *planning) handOver(ctx context.Context, message string, skills, offered []string, reply *model.Response) error {
	step := catalog.PlanStep{
		Step: 1, Task: visible.Cut(w.req.Task, maxStepTask), Skills: offered,
		ReturnSpec: catalog.ReturnSpec{Shape: "string", Reason: "the answer to the user"},
	}
	var plan catalog.PlanView
	intent := catalog.Plan{PlanID: w.req.Turn.PlanID, Epoch: w.req.Epoch, Revision: w.req.Revision, Steps: []catalog.PlanStep{step}, Usage: w.loop.used}
	if err := w.submit(ctx, "plan", intent, &plan); err != nil {
		return err
	}
	w.reply = planReply{Plan: &plan, Direct: &direct{Message: message, Skills: skills, Others: w.others, Reply: *reply}}
	return nil
}

// maxStepTask bounds the task of a step, in bytes.
const maxStepTask = 4096

// answerDirectly carries the planner's conversation on until a reply is the answer, or plans.
func (w *worker) answerDirectly(ctx context.Context, from *direct) error {
	if err := w.compileShape(); err != nil {
		return err
	}
	manifests, err := w.manifests(ctx, w.req.Step.Skills, catalog.MaxLoaded)
	if err != nil {
		return err
	}
	var tools []*tool
	w.req.Step.Skills = nil
	for i, name := range agents.WireNames(manifests, builtinNames) {
		w.req.Step.Skills = append(w.req.Step.Skills, manifests[i].Name)
		tools = append(tools, w.skill(manifests[i], name))
	}
	// The tools are those of the first request, so that caches of prompts serve these requests, too,
	// until a result is not shown whole.
	searched := func(context.Context, string, json.RawMessage) (any, error) {
		return nil, mistaken("skills are found before the first result: plan with those under [Skills] and [More skills], which plan loads by itself")
	}
	tools = append(tools, newTool(tool{Tool: execPythonTool, call: called(w.python)}),
		newTool(tool{Tool: findSkillsTool, call: searched}), newTool(tool{Tool: loadSkillTool, call: searched}),
		newTool(tool{Tool: planToolFor(from.Others), output: true, call: called(func(_ context.Context, _ string, a planArgs) (any, error) {
			w.written = &written{a, from.Skills}
			return nil, nil
		})}), newTool(tool{Tool: readLinesTool, usable: w.canRead, call: called(w.readLines)}))
	agent := w.inTime(w.cfg.builtin(agents.Planner))
	w.show = &tokens{show: func(d bus.ContentData) { w.say(progress{Text: &d}) }, now: w.cfg.Now}
	answer := &spoken{show: w.show, text: true, tool: planTool.Name, member: "answer"}
	w.loop = &loop{
		seen:  w.takeSeen,
		model: w.cfg.Model, log: w.cfg.Log, agent: agent, tools: w.watched(tools, agent), text: true, on: answer.take, calling: answer.calling, step: w.place.Step, now: w.cfg.Now,
		req: request(agent, w.req.Soul, w.req.Turn, w.cfg.Now(), from.Message), taken: &from.Reply,
	}
	text, err := w.loop.run(ctx)
	switch {
	case err != nil:
		return err
	case w.written != nil && len(w.written.Plan.Steps) == 0 && w.written.Plan.Answer != "":
		text, w.written = w.written.Plan.Answer, nil
	case w.written != nil:
		return &stopError{reason: "the request needs a plan"}
	}
	w.show.flush(true)
	w.answer = visible.Cut(guarded(strings.TrimSpace(text)), maxResponse)
	if w.answer == "" {
		return &model.Error{Reason: "the model answered without text"}
	}
	return w.rememberLast(ctx, writeMemoryArgs{Data: compact(w.answer)})
}

// written is a plan that the model of a task wrote.
type written struct {
	Plan   planArgs `json:"plan"`
	Skills []string `json:"skills"` // that it may use
}

// shifted returns the plan with its steps numbered from another first one.
func (p planArgs) shifted(by int) planArgs {
	move := func(numbers []int) []int {
		var out []int
		for _, n := range numbers {
			out = append(out, n+by)
		}
		return out
	}
	p.Steps = slices.Clone(p.Steps)
	for i := range p.Steps {
		s := &p.Steps[i]
		s.Step, s.Inputs, s.After = s.Step+by, move(s.Inputs), move(s.After)
	}
	p.Calls = slices.Clone(p.Calls)
	for i := range p.Calls {
		p.Calls[i].Step += by
	}
	return p
}

// signWritten signs a plan that the model of a task wrote, if it can work. Otherwise the
// planner's model reads what is wrong with it, and corrects it.
func (w *planning) signWritten(ctx context.Context) (done bool, err error) {
	args := w.req.Written.Plan
	if len(args.Steps) > 0 {
		args = args.shifted(w.req.FirstStep - args.Steps[0].Step)
	}
	_, err = w.submitPlan(ctx, "", args)
	var wrong *mistake
	if errors.As(err, &wrong) {
		return false, nil
	}
	return err == nil, err
}

// outside names a skill of a plan that it must not use, because it was not ranked before the
// first result; empty: none.
func (w *written) outside(steps []catalog.PlanStep) string {
	if w == nil {
		return ""
	}
	for _, s := range steps {
		for _, name := range s.Skills {
			if !slices.Contains(w.Skills, name) {
				return fmt.Sprintf("step %d: skill %q was not found before the first result", s.Step, name)
			}
		}
	}
	return ""
}
