package agentic

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"unicode/utf8"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/bus"
)

// planAttempts bounds how often the model may correct a plan that cannot work.
const planAttempts = 3

// maxSkills is how many manifests a planner loads.
const maxSkills = 6

// Planner finds and loads skills, writes the plan, verifies that every
// return_spec can be met, and seals it.
type Planner struct {
	cfg    Config
	grants *renewals
}

// NewPlanner needs the planner's key.
func NewPlanner(cfg Config) *Planner { return &Planner{cfg: cfg, grants: newRenewals()} }

// Serve takes delegations until ctx ends.
func (p *Planner) Serve(ctx context.Context, ready chan<- struct{}) error {
	here := placeReply{p.cfg.Bus.Instance()}
	return p.cfg.Bus.Serve(ctx, bus.Service{
		Name: bus.ServiceName("planner"), Version: "1.0.0", Description: "writes plans", Queue: "planner", Workers: workers,
		Endpoints: map[string]bus.Handler{
			bus.Agent("planner"):                        answer(p.cfg.Log, func(context.Context, placeRequest) placeReply { return here }),
			bus.AgentInstance("planner", here.Instance): answer(p.cfg.Log, p.plan),
			bus.Grant("planner", here.Instance):         answer(p.cfg.Log, p.grants.take),
		},
	}, ready)
}

func (p *Planner) plan(ctx context.Context, req planRequest) planReply {
	sealer := p.cfg.sealer(*p.cfg.Key)
	unfollow := p.grants.follow(req.Turn, sealer)
	defer unfollow()
	reply, err := p.write(ctx, sealer, req)
	if err != nil {
		p.cfg.Log.WarnContext(ctx, "planner", slog.String("plan_id", req.Turn.PlanID), slog.String("error", err.Error()))
		return planReply{Error: plain(err)}
	}
	return reply
}

// write is one planning: find, load, think, verify, seal.
func (p *Planner) write(ctx context.Context, sealer *Sealer, req planRequest) (planReply, error) {
	skills, err := p.skills(ctx, sealer, req)
	if err != nil {
		return planReply{}, err
	}
	in := model.PlanInput{
		Task: req.Task, Skills: skills, FirstStep: req.FirstStep, MaxSteps: catalog.MaxSteps - req.FirstStep + 1,
		Completed: req.Completed, Failed: req.Failed, Remaining: req.Remaining,
	}
	for range planAttempts {
		out, _, err := model.Think[model.PlanInput, model.PlanOutput](ctx, p.cfg.Model, model.WritePlan, model.Instructions(model.WritePlan, req.Soul), in)
		if err != nil {
			return planReply{}, err
		}
		if !out.Feasible {
			return planReply{Reason: out.Reason}, nil
		}
		if in.Violations = verifyPlan(out.Steps, req, skills); len(in.Violations) > 0 {
			continue
		}
		var plan catalog.PlanView
		_, err = sealer.Order(ctx, req.Turn, Place{}, "plan", catalog.Plan{PlanID: req.Turn.PlanID, Epoch: req.Epoch, Revision: req.Revision, Steps: listed(out.Steps)}, &plan)
		if err != nil {
			return planReply{}, err
		}
		return planReply{Plan: &plan}, nil
	}
	return planReply{Reason: "no plan could be written that the skills can meet: " + in.Violations[0]}, nil
}

// skills finds candidates, has the model pick, and loads their manifests. A
// skill that cannot be loaded is left out: its server may be down.
func (p *Planner) skills(ctx context.Context, sealer *Sealer, req planRequest) ([]model.Skill, error) {
	var found catalog.SkillFindResult
	if _, err := sealer.Order(ctx, req.Turn, Place{}, "skill.find", catalog.SkillFind{Query: cut(req.Task, 1000)}, &found); err != nil {
		return nil, err
	}
	if len(found.Skills) == 0 {
		return nil, nil
	}
	in := model.SelectInput{Task: req.Task}
	for _, h := range found.Skills {
		in.Candidates = append(in.Candidates, model.Candidate{Name: h.Name, Description: h.Description})
	}
	picked, _, err := model.Think[model.SelectInput, model.SelectOutput](ctx, p.cfg.Model, model.SelectSkills, model.Instructions(model.SelectSkills, req.Soul), in)
	if err != nil {
		return nil, err
	}
	var out []model.Skill
	for _, name := range picked.Skills[:min(len(picked.Skills), maxSkills)] {
		if !slices.ContainsFunc(found.Skills, func(h catalog.SkillHit) bool { return h.Name == name }) {
			continue // the model named one that was not offered
		}
		var m catalog.Manifest
		_, err := sealer.Order(ctx, req.Turn, Place{}, "skill.load", catalog.SkillLoad{Skill: name}, &m)
		var refused *OrderError
		if errors.As(err, &refused) {
			p.cfg.Log.WarnContext(ctx, "skill cannot be loaded", slog.String("skill", name), slog.String("error", err.Error()))
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(out, model.Skill{Name: m.Name, Description: m.Description, InputSchema: m.InputSchema, OutputSchema: m.OutputSchema, Effect: string(m.Effect)})
	}
	return out, nil
}

// listed are steps whose skills are a list, if an empty one, where a model left
// them out.
func listed(steps []model.Step) []model.Step {
	for i := range steps {
		steps[i].Skills = append([]string{}, steps[i].Skills...)
	}
	return steps
}

// plain is an error as another role, and in the end the user, may read it: the
// reason in words, and the order that it is about.
func plain(err error) string {
	var refused *OrderError
	if errors.As(err, &refused) {
		return fmt.Sprintf("%s (%s)", cmp.Or(refused.Answer.Reason, refused.Answer.Code.Info().Title), refused.Type)
	}
	var silent *silentError
	if errors.As(err, &silent) {
		return "the " + silent.role + " does not answer"
	}
	var thought *model.Error
	if errors.As(err, &thought) {
		return "the model could not answer: " + thought.Reason
	}
	return "internal error"
}

// cut is the beginning of a text: at most n bytes, whole characters.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
