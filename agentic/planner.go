package agentic

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/bus"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/logging"
	"aob.dev/writ/internal/ratelimit"
	"aob.dev/writ/internal/visible"
	"aob.dev/writ/state/agents"
)

// Planner runs the agent that finds and loads skills and writes the plan, verifies that every
// return_spec can be met, and signs it.
type Planner struct {
	cfg    Config
	grants *renewals
	places *ratelimit.Places // of requests being planned
}

// NewPlanner requires the planner's key.
func NewPlanner(cfg Config) *Planner {
	return &Planner{cfg: cfg, grants: newRenewals(), places: ratelimit.NewPlaces(workers)}
}

// Serve accepts delegations until ctx ends.
func (p *Planner) Serve(ctx context.Context, ready chan<- struct{}) error {
	here := placeReply{p.cfg.Bus.Instance()}
	return p.cfg.Bus.Serve(ctx, bus.Service{
		Name: bus.ServiceName("planner"), Version: "1.0.0", Description: "writes plans", Queue: "planner", Workers: atOnce,
		Endpoints: map[string]bus.Handler{
			bus.Agent("planner"):                answer(p.cfg.Log, func(context.Context, placeRequest) placeReply { return here }),
			bus.Grant("planner", here.Instance): answer(p.cfg.Log, p.grants.take),
			bus.Produce("planner"):              answer(p.cfg.Log, p.produce),
		},
		Talkers: map[string]bus.Talker{bus.AgentInstance("planner", here.Instance): talking(p.cfg.Log, p.talk)},
	}, ready)
}

// talk is plan, and shows the requests to the model.
func (p *Planner) talk(ctx context.Context, req planRequest, say func(progress)) planReply {
	return p.plan(model.Showing(ctx, func(body []byte) { say(progress{Request: body}) }), req, say)
}

func (p *Planner) plan(ctx context.Context, req planRequest, say func(progress)) planReply {
	ctx = logging.By(logging.In(ctx, req.Turn.TraceID), agents.Planner, "plan")
	submitter := p.cfg.submitter(*p.cfg.Key)
	ctx, unfollow := p.grants.follow(ctx, req.Turn, submitter, nil)
	defer unfollow()
	leave, err := p.places.Wait(ctx, req.Turn.Tenant, keyOf(req.Turn.Grant), 0)
	if err != nil {
		return planReply{Error: "the planner is stopping"}
	}
	defer leave()
	w := &planning{cfg: p.cfg, submitter: submitter, req: req, loaded: make(map[string]catalog.Manifest), offered: make(map[string]string), show: &tokens{show: func(d bus.ContentData) { say(progress{Text: &d}) }, now: p.cfg.Now}}
	if err := w.write(ctx); err != nil {
		w.show.withdraw()
		p.cfg.Log.WarnContext(ctx, "planner", slog.String("plan_id", req.Turn.PlanID), slog.String("error", model.Detail(err)))
		w.reply = planReply{Error: plain(err)}
	}
	if w.reply.Plan == nil {
		w.reply.Usage = w.used() // not reported in an intent of the planner
	}
	return w.reply
}

// planning is the work on one plan or revision.
type planning struct {
	cfg       Config
	submitter *Submitter
	req       planRequest
	loaded    map[string]catalog.Manifest // by name
	offered   map[string]string           // ids of the skills that are tools, by the name of the tool
	others    []catalog.OtherAgent        // agents that its steps may name
	loop      *loop
	show      *tokens // of an answer
	reply     planReply
}

// used returns the usage of the planner's model, if it was asked.
func (w *planning) used() []catalog.Usage {
	if w.loop == nil {
		return nil
	}
	return w.loop.used
}

// submit signs an intent. The model is told of a refusal of its calls; a refusal of others that passes
// is waited for as long as planning may take.
func (w *planning) submit(ctx context.Context, typ string, args, result any) error {
	do := func() error {
		_, err := w.submitter.Submit(ctx, w.req.Turn, Place{}, typ, args, result)
		return err
	}
	if callOf(ctx) != "" {
		return do()
	}
	until, cancel := context.WithTimeout(ctx, w.cfg.stepTime())
	defer cancel()
	return w.cfg.lasting(until, do)
}

// write has the planner's model find and load skills and write the plan, which is verified and
// signed.
func (w *planning) write(ctx context.Context) error {
	var err error
	if w.others, err = w.agents(ctx); err != nil {
		return err
	}
	if w.req.Written != nil {
		if done, err := w.signWritten(ctx); done || err != nil {
			return err
		}
	}
	found, err := w.find(ctx, catalog.SkillFind{Query: w.req.Task})
	if err != nil {
		return err
	}
	var direct []*tool
	var ids []string
	if w.req.Revision == 1 {
		if direct, ids, err = w.offer(ctx, found); err != nil {
			return err
		}
	}
	var m blocks
	other := slices.DeleteFunc(slices.Clone(found), func(s catalog.SkillHit) bool { return slices.Contains(ids, s.Name) })
	m.add("Skills", w.plannable(other[:min(len(other), described)]))
	if len(other) > described {
		m.add("More skills", named(other[described:]))
	}
	if w.req.Revision > 1 {
		m.add("Plan", w.req.soFar)
	}
	m.add("Limits", planLimits{w.req.FirstStep, w.req.room()})
	if len(w.others) > 0 {
		m.add("Agents", w.others)
	}
	agent, message := w.cfg.builtin(agents.Planner), m.task(w.req.Task)
	w.loop = &loop{
		model: w.cfg.Model, log: w.cfg.Log, agent: agent, tools: append(direct, w.tools()...),
		req: request(agent, w.req.Soul, w.req.Turn, w.cfg.Now(), message),
	}
	if w.req.Revision == 1 {
		answer := &spoken{show: w.show, text: true, tool: planTool.Name, member: "answer"}
		w.loop.text, w.loop.on, w.loop.calling = true, answer.take, answer.calling
	}
	text, err := w.loop.run(ctx)
	switch {
	case errors.Is(err, errHandover):
		return w.handOver(ctx, message, named(found), ids, w.loop.taken)
	case err == nil && w.reply.Answer != "":
		w.show.flush(true)
	case err == nil && w.reply.Plan == nil && w.reply.Reason+w.reply.Ask == "":
		w.show.flush(true)
		return w.answer(ctx, text)
	}
	if wrong, ok := errors.AsType[*outputError](err); ok {
		w.reply = planReply{Reason: "no plan could be written that the skills can meet: " + wrong.Error()}
		return nil
	}
	return err
}

// described is how many skills a request describes. It names the others.
const described = 12

// planLimits says how the steps of a plan are numbered.
type planLimits struct {
	FirstStep int `json:"first_step"`
	MaxSteps  int `json:"max_steps"`
}

// answer signs a plan without steps: the model answers by itself.
func (w *planning) answer(ctx context.Context, text string) error {
	if text = strings.TrimSpace(text); text == "" {
		return &model.Error{Reason: "the model answered without text"}
	}
	_, err := w.submitPlan(ctx, "", planArgs{Answer: text})
	return err
}

// plannable is a skill as the planner's model reads it. Changes is known of the skills that are
// loaded.
type plannable struct {
	catalog.SkillHit
	Changes bool            `json:"changes,omitempty"` // data, for good
	Input   json.RawMessage `json:"input_schema,omitempty"`
	Output  json.RawMessage `json:"output_schema,omitempty"`
}

func (w *planning) plannable(found []catalog.SkillHit) []plannable {
	out := make([]plannable, len(found))
	for i, s := range found {
		out[i].SkillHit = s
		if m, ok := w.loaded[s.Name]; ok && m.Effect != catalog.Pure {
			if out[i].Changes = true; i < ranked {
				out[i].Input = m.InputSchema
			}
		}
	}
	return out
}

func named(found []catalog.SkillHit) []string {
	out := make([]string, len(found))
	for i, s := range found {
		out[i] = s.Name
	}
	return out
}

// find returns the approved skills, those that share words with the query first.
func (w *planning) find(ctx context.Context, q catalog.SkillFind) ([]catalog.SkillHit, error) {
	var found catalog.SkillFindResult
	q.Query, q.Limit = visible.Cut(q.Query, 1000), catalog.MaxFound
	err := w.submit(ctx, "skill.find", q, &found)
	return found.Skills, err
}

func (w *planning) tools() []*tool {
	return []*tool{
		newTool(tool{Tool: findSkillsTool, call: called(func(ctx context.Context, _ string, a catalog.FindArgs) (any, error) {
			hits, err := w.find(ctx, catalog.SkillFind{Query: a.Query, Related: true})
			return skillsFound(hits, catalog.MaxFound), err
		})}),
		newTool(tool{Tool: loadSkillTool, call: called(w.load)}),
		newTool(tool{Tool: planToolFor(w.others), output: true, call: called(w.submitPlan)}),
	}
}

// foundSkills are skills as a model reads them.
type foundSkills struct {
	Skills []catalog.SkillHit `json:"skills"`
	Note   string             `json:"note,omitempty"`
	Cut
}

func skillsFound(hits []catalog.SkillHit, most int) foundSkills {
	out := foundSkills{Skills: hits, Cut: Cut{More: len(hits) == most}}
	if len(hits) == 0 {
		out.Skills, out.Note = []catalog.SkillHit{}, "Nothing shares a word with the query. Search in other words, such as those of the names that you were shown."
	}
	return out
}

// load loads manifests. It names skills that cannot be loaded: their servers may be down.
func (w *planning) load(ctx context.Context, _ string, a loadSkillArgs) (any, error) {
	if err := w.loadNew(ctx, a.Skills); err != nil {
		return nil, err
	}
	out := loadSkillResult{Skills: []plannable{}}
	for _, name := range a.Skills {
		if id, ok := w.idOf(name); ok {
			m := w.loaded[id]
			out.Skills = append(out.Skills, plannable{catalog.SkillHit{Name: m.Name, Description: m.Description}, m.Effect != catalog.Pure, m.InputSchema, m.OutputSchema})
		} else {
			out.Unavailable = append(out.Unavailable, name)
		}
	}
	return out, nil
}

// loadNew loads those of the skills that are not loaded yet. Those that cannot be are left out.
func (w *planning) loadNew(ctx context.Context, names []string) error {
	var missing []string
	for _, name := range names {
		if _, ok := w.idOf(name); !ok && !slices.Contains(missing, name) {
			missing = append(missing, name)
		}
	}
	loaded, err := loadSkills(ctx, w.submit, w.cfg.Log, missing, catalog.MaxLoaded)
	for _, m := range loaded {
		w.loaded[m.Name] = m
	}
	return err
}

// submitPlan signs the plan, if it can work.
func (w *planning) submitPlan(ctx context.Context, _ string, a planArgs) (any, error) {
	if a.Infeasible+a.Ask != "" {
		w.reply = planReply{Reason: a.Infeasible, Ask: a.Ask}
		return nil, nil
	}
	var names []string
	for _, s := range a.Steps {
		names = append(names, s.Skills...)
	}
	if err := w.loadNew(ctx, names); err != nil {
		return nil, err
	}
	w.identify(a)
	if wrong := w.req.Written.outside(a.Steps); wrong != "" {
		return nil, mistaken("%s", wrong)
	}
	if wrong := verifyPlan(a, w.req, w.loaded, w.others); len(wrong) > 0 {
		return nil, &mistake{wrong}
	}
	a.Answer = visible.Cut(guarded(a.Answer), maxResponse)
	var plan catalog.PlanView
	intent := catalog.Plan{PlanID: w.req.Turn.PlanID, Epoch: w.req.Epoch, Revision: w.req.Revision, Steps: listed(a.Steps), Drop: a.Drop, Answer: a.Answer, Usage: w.used()}
	if err := w.submit(ctx, "plan", intent, &plan); err != nil {
		return nil, err
	}
	w.reply = planReply{Plan: &plan, Answer: a.Answer, Calls: a.Calls}
	return nil, nil
}

// listed ensures that skills of steps are a list, if an empty one, where a model left them out.
func listed(steps []catalog.PlanStep) []catalog.PlanStep {
	for i := range steps {
		steps[i].Skills = append([]string{}, steps[i].Skills...)
	}
	return append([]catalog.PlanStep{}, steps...)
}

// internalError is what users are told of an error that is for the log alone. No model writes about
// it: it would only guess.
const internalError = "something failed in this system, and its log says what"

// plain returns an error as another role, and in the end the user, may read it: the reason in
// words, with the intent concerned.
func plain(err error) string {
	if away := (*unavailableError)(nil); errors.As(err, &away) {
		return away.message
	}
	if refused, ok := errors.AsType[*IntentError](err); ok {
		again := ""
		if after := waitOf(refused.Answer); after > 0 && passes(refused.Answer.Code) {
			again = fmt.Sprintf(": try again in %d s", after)
		}
		return fmt.Sprintf("%s (%s)", cmp.Or(refused.Answer.Reason, refused.Answer.Code.Info().Title)+again, refused.Type)
	}
	if silent, ok := errors.AsType[*silentError](err); ok {
		return "the " + silent.role + " does not answer"
	}
	if unanswered, ok := errors.AsType[*model.Error](err); ok {
		return "the model could not answer: " + unanswered.Reason
	}
	if errors.Is(err, errNoOutput) || errors.Is(err, errLimit) || errors.Is(err, errKept) {
		return err.Error()
	}
	return internalError
}
