package state

import (
	"encoding/json"
	"slices"

	"aob.dev/writ/agentic/workflows"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// Replay is what a run.replay keeps of the run that it repeats. It stands in its record, as a part that can be
// erased with it: the state has dropped the values of a run that has ended.
type Replay struct {
	Inputs json.RawMessage `json:"inputs"`
	// Outputs of its nodes that are done, by id, as the graph keeps them. One that is not here was erased.
	Outputs map[string]json.RawMessage `json:"outputs"`
}

// replay is what a run has that repeats another one.
type replay struct {
	Freeze        bool               `json:"freeze,omitempty"`
	RepeatEffects bool               `json:"repeat_effects,omitempty"`
	Kept          map[int]*nodeOrder `json:"kept"` // what came of the nodes, by step
}

// RuleReplay is the rule of a hold that every repetition of effects waits for.
const RuleReplay = "writ.replay"

// ReplayHolds are the approvals that an order needs because it repeats effects.
func ReplayHolds(typ string, args json.RawMessage) []intents.HoldRule {
	var a catalog.RunReplay
	if typ != TypeRunReplay || json.Unmarshal(args, &a) != nil || !a.RepeatEffects {
		return nil
	}
	return []intents.HoldRule{{ID: RuleReplay, Reason: "the replay carries out again what has effects", Roles: []string{RoleApprover}}}
}

// runReplay opens a run that repeats another one from a node on.
var runReplay = move(TypeRunReplay,
	func(v *View, o Order, a catalog.RunReplay) (Effect, error) {
		id := RunOf(o)
		if c := o.Context; c.PlanID != "" && c.PlanID != id {
			return Effect{}, intents.Refuse(intents.TaskScope, "/context/plan_id", "context names another plan")
		}
		if _, ok := v.wholePlan(o.Tenant, id); ok {
			return Effect{}, illegal("/intent/args/run_id", "a plan with this id exists")
		}
		of, err := v.replayed(o, a.RunID)
		if err != nil {
			return Effect{}, err
		}
		if o.Replay == nil && !o.Erased {
			return Effect{}, illegal("/intent/args/run_id", "the inputs of the run were erased: it cannot be repeated")
		}
		if holds := ReplayHolds(o.Type, o.Args); len(holds) > 0 && o.Recorded >= 0 && !o.Released && o.Decision.Verdict == intents.Allow {
			return Effect{}, illegal("/intent/args/repeat_effects", "effects are repeated once people have approved it")
		}
		v.rely(SubjectRegistry)
		v.rely(SubjectTenant(o.Tenant))
		p, err := v.s.newReplay(o, a, of)
		if err != nil {
			return Effect{}, err
		}
		if !a.RepeatEffects {
			return Effect{p.answer(), p.touches(true)}, nil
		}
		if err := v.mayRunAgents(o, p.View.Steps, "/intent/args/repeat_effects"); err != nil {
			return Effect{}, err
		}
		return Effect{p.answer(), p.touches(true)}, nil
	},
	func(s *State, o Order, a catalog.RunReplay) error {
		of, err := s.planOf(o, a.RunID)
		if err != nil {
			return err
		}
		p, err := s.newReplay(o, a, of)
		if err != nil {
			return err
		}
		return s.addRun(p)
	}).keepsAllBut().restores(restoreNodes)

// replayed finds a run that somebody may repeat.
func (v *View) replayed(o Order, id string) (*plan, error) {
	of, ok := v.wholePlan(o.Tenant, id)
	switch {
	case !ok || of.View.Run == nil:
		return nil, illegal("/intent/args/run_id", "no such run: one that has ended can be repeated for 48 hours")
	case !final(of.View.Status):
		return nil, illegal("/intent/args/run_id", "the run has not ended")
	case of.View.Revision > 1:
		return nil, illegal("/intent/args/run_id", "the run was patched: start one of a definition with the patch instead")
	case of.View.Run.Of != "":
		return nil, illegal("/intent/args/run_id", "the run is a replay: repeat "+of.View.Run.Of)
	}
	if of.View.UserID != o.User && !Covered(v.s.rules, v.capabilitiesNow(o), catalog.ReplayAnyRuns) {
		return nil, intents.Refuse(intents.TaskScope, "/intent/args/run_id", "the run belongs to another user: to repeat it needs "+catalog.ReplayAnyRuns)
	}
	return of, nil
}

// graphOf is the graph of a workflow as a run had it; nil: it is not in force any more, nor
// was it before what is.
func (s *State) graphOf(tenant string, r *catalog.RunView) *workflows.Graph {
	for _, of := range []string{tenant, systemTenant} {
		for in := s.agents[of]; in != nil; in = in.Before {
			for _, g := range in.Scopes.Workflows {
				if g.WorkflowID == r.WorkflowID && g.Digest == r.Digest {
					return g
				}
			}
		}
	}
	return nil
}

// newReplay is a run as run.replay opens it: nodes that are not from_node, nor behind it, are what they came to.
func (s *State) newReplay(o Order, a catalog.RunReplay, of *plan) (*plan, error) {
	g := s.graphOf(o.Tenant, of.View.Run)
	switch {
	case g == nil || len(g.Nodes) != len(of.View.Steps):
		return nil, illegal("/intent/args/run_id", "the workflow has changed since: only its definitions of now and of before can be repeated")
	case g.Node(a.FromNode) == nil:
		return nil, illegal("/intent/args/from_node", "the workflow has no such node")
	}
	p := s.emptyRun(o, &run{Graph: g, Orders: make(map[int]*nodeOrder), Replay: &replay{
		Freeze: a.Mode == catalog.ReplayFreeze, RepeatEffects: a.RepeatEffects, Kept: make(map[int]*nodeOrder),
	}})
	r := p.View.Run
	r.Of, r.FromNode, r.Mode, r.RepeatEffects = a.RunID, a.FromNode, a.Mode, a.RepeatEffects
	if o.Replay != nil {
		p.Run.Inputs = o.Replay.Inputs
	}
	again := behind(g, a.FromNode)
	for i, was := range of.View.Steps {
		step := &p.View.Steps[i]
		kept := keptOf(of, was, o.Replay)
		if kept != nil {
			p.Run.Replay.Kept[step.Step] = kept
			p.ByIntent[kept.ID] = orderRef{Position: kept.Position, Revision: 1, Step: step.Step}
		}
		stays := was.Status == catalog.StepSkipped || kept != nil && (kept.Status == string(intents.Done) || was.Status == catalog.StepFailed && g.Tolerates(was.ID))
		if again[was.ID] || !stays {
			continue
		}
		if step.Status = was.Status; kept != nil {
			step.Replayed, p.Run.Orders[step.Step] = kept.Position, kept
		}
	}
	if !a.RepeatEffects { // agents are frozen by what they have said
		return p, nil
	}
	return p, s.takeAgents(p, 0, "/intent/args/repeat_effects")
}

// keptOf is what came of a node of a run; nil: it did not end.
func keptOf(of *plan, was catalog.StepView, r *Replay) *nodeOrder {
	ref, ok := of.Nodes[was.Step]
	if !ok {
		return nil
	}
	kept := &nodeOrder{nodeRef: ref, Status: string(intents.Failed), Final: true}
	if was.Status != catalog.StepDone {
		return kept
	}
	kept.Status = string(intents.Done)
	if r != nil && r.Outputs[was.ID] == nil {
		kept.Status = erased
	} else if r != nil {
		kept.Outputs = r.Outputs[was.ID]
	}
	return kept
}

// erased is the status of what a node came to, where nobody knows it any more: the node fails.
const erased = "erased"

// behind are a node and all that its edges lead to.
func behind(g *workflows.Graph, from string) map[string]bool {
	out, todo := map[string]bool{from: true}, []string{from}
	for len(todo) > 0 {
		node := todo[0]
		todo = todo[1:]
		for _, e := range g.Edges {
			if e.From == node && !out[e.To] {
				out[e.To] = true
				todo = append(todo, e.To)
			}
		}
	}
	return out
}

// kept is what came of a node in the run that is repeated; the zero value: nothing.
func (p *plan) kept(step int) nodeOrder {
	if p.Run.Replay != nil && p.Run.Replay.Kept[step] != nil {
		return *p.Run.Replay.Kept[step]
	}
	return nodeOrder{}
}

// read is what other nodes read of a node: in a freeze what is recorded, if that is.
func (p *plan) read(step int) *nodeOrder {
	if r := p.Run.Replay; r != nil && r.Freeze && r.Kept[step] != nil && r.Kept[step].Outputs != nil {
		return r.Kept[step]
	}
	return p.Run.Orders[step]
}

// carriedOut says whether a node of a run is: of a replay only what has no effect, unless people have
// approved more.
func (s *State) carriedOut(p *plan, step *catalog.StepView) bool {
	switch {
	case p.Run.Replay == nil || p.Run.Replay.RepeatEffects || step.Type == workflows.Python:
		return true
	case step.Type == workflows.Function:
		pin, ok, err := s.dir.SkillNamed(s.rules, p.View.TenantID, step.Skills[0])
		return err == nil && ok && pin.Effect == string(catalog.Pure)
	}
	return false
}

// replays makes a task of a replay what its node asks for.
func (s *State) replays(p *plan, t *Task) {
	if p.Run == nil || p.Run.Replay == nil {
		return
	}
	r, step := p.Run.Replay, p.step(t.Step)
	kept := r.Kept[t.Step]
	switch {
	case s.carriedOut(p, step):
		if r.Freeze && kept != nil && kept.Status == string(intents.Done) {
			t.Compare = kept.Position
		}
	case kept != nil:
		step.Replayed, p.Run.Orders[t.Step], t.Kept = kept.Position, kept, true
	case r.Freeze || step.Type == workflows.Agent:
		t.Kept = true
	default:
		t.DryRun = true
	}
}

// keeps is how the task of a node of a replay ends, which carries out nothing; nil: it seals an order.
func (p *plan) keeps(s *catalog.StepView) *catalog.KeptNode {
	if t := p.taskOf(s); t == nil || !t.Kept {
		return nil
	}
	kept := p.kept(s.Step)
	out := &catalog.KeptNode{Replayed: kept.Position, Status: string(intents.Failed)}
	if kept.Status == string(intents.Done) {
		out.Order, out.Status = kept.ID, kept.Status
	}
	return out
}

// taskOf is the last task of a step; nil: there was none.
func (p *plan) taskOf(s *catalog.StepView) *task {
	i := slices.IndexFunc(p.Tasks, func(t *task) bool { return t.ID == s.TaskID && t.Ask == "" })
	if i < 0 {
		return nil
	}
	return p.Tasks[i]
}

// MayAct refuses what a replay does not carry out, and what nobody does for a tenant that
// lives elsewhere.
func (v *View) MayAct(tenant, plan, effect string) error {
	v.s.mu.RLock()
	defer v.s.mu.RUnlock()
	if err := v.mayAct(tenant, plan, effect); err != nil {
		return err
	}
	p := v.s.plans[tenant+"/"+plan]
	if p == nil || p.Run == nil || p.Run.Replay == nil || p.Run.Replay.RepeatEffects || effect == string(catalog.Pure) {
		return nil
	}
	return intents.Refuse(intents.TaskScope, "/intent/type", "the plan is a replay, which carries out only what has no effect")
}

// Source is where a run that is to be repeated has its inputs and outputs.
type Source struct {
	Start int64            // position of its workflow.start
	Nodes map[string]int64 // of the orders of nodes that are done, and of what ended those of agents
	Graph *workflows.Graph
}

// Replayed finds a run that an order repeats.
func (v *View) Replayed(o Order, a catalog.RunReplay) (src Source, err error) {
	v.s.mu.RLock()
	defer v.s.mu.RUnlock()
	of, err := v.replayed(o, a.RunID)
	if err != nil {
		return src, err
	}
	if len(of.Texts) == 0 {
		return src, illegal("/intent/args/run_id", "the inputs of the run were erased: it cannot be repeated")
	}
	src = Source{of.Texts[0], make(map[string]int64), v.s.graphOf(o.Tenant, of.View.Run)}
	for _, s := range of.View.Steps {
		if ref, ok := of.Nodes[s.Step]; ok && s.Status == catalog.StepDone {
			src.Nodes[s.ID] = ref.Position
		}
	}
	return src, nil
}
