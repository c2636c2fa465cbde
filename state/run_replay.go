package state

import (
	"encoding/json"
	"slices"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state/workflows"
)

// Replay is what a run.replay retains of the run that it repeats. It is a part of its record
// that can be erased with it: the state has dropped the values of a run that has ended.
type Replay struct {
	Inputs json.RawMessage `json:"inputs"`
	// Outputs of its done nodes, by id, as the graph retains them. A missing one was erased.
	Outputs map[string]json.RawMessage `json:"outputs"`
}

// replay is the additional part of a run that repeats another one.
type replay struct {
	Freeze        bool                `json:"freeze,omitempty"`
	RepeatEffects bool                `json:"repeat_effects,omitempty"`
	Kept          map[int]*nodeIntent `json:"kept"` // results of the nodes, by step
}

// RuleReplay is the rule of the hold for every repetition of effects.
const RuleReplay = "writ.replay"

// ReplayHolds are the approvals that an intent needs because it repeats effects.
func ReplayHolds(typ string, args json.RawMessage) []intents.HoldRule {
	var a catalog.RunReplay
	if typ != TypeRunReplay || json.Unmarshal(args, &a) != nil || !a.RepeatEffects {
		return nil
	}
	return []intents.HoldRule{{ID: RuleReplay, Reason: "the replay carries out again what has effects", Roles: []string{RoleApprover}}}
}

// runReplay opens a run that repeats another one from a node on.
var runReplay = newTransition(TypeRunReplay,
	func(v *View, o Intent, a catalog.RunReplay) (Effect, error) {
		if err := v.newPlanID(o, RunOf(o), "/intent/args/run_id"); err != nil {
			return Effect{}, err
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
		v.addRead(SubjectRegistry)
		v.addRead(SubjectTenant(o.Tenant))
		p, err := v.s.newReplay(o, a, of)
		if err != nil {
			return Effect{}, err
		}
		if a.RepeatEffects {
			if err := v.mayRunAgents(o, p.View.Steps, "/intent/args/repeat_effects"); err != nil {
				return Effect{}, err
			}
		}
		return Effect{p.answer(), p.writes(true)}, nil
	},
	func(s *State, o Intent, a catalog.RunReplay) error {
		of, err := s.planOf(o, a.RunID)
		if err != nil {
			return err
		}
		p, err := s.newReplay(o, a, of)
		if err != nil {
			return err
		}
		s.inherit(p, o, of.Sources)
		return s.addPlan(p)
	}).retainsAllBut().restores(restoreNodes)

// replayed finds a run that somebody may repeat. A missing run, and another user's for those who may
// not repeat it, are refused alike.
func (v *View) replayed(o Intent, id string) (*plan, error) {
	of, ok := v.wholePlan(o.Tenant, id)
	switch {
	case !ok || of.View.Run == nil || of.View.UserID != o.User && !Covers(v.capabilitiesNow(o), catalog.ReplayAnyRuns):
		return nil, intents.Refuse(intents.TaskScope, "/intent/args/run_id", "no such run of this user: one that has ended can be repeated for 48 hours, and another user's with "+catalog.ReplayAnyRuns)
	case !of.View.Status.Ended():
		return nil, illegal("/intent/args/run_id", "the run has not ended")
	case of.View.Revision > 1:
		return nil, illegal("/intent/args/run_id", "the run was patched: start one of a definition with the patch instead")
	case of.View.Run.ReplayOf != "":
		return nil, illegal("/intent/args/run_id", "the run is a replay: repeat "+of.View.Run.ReplayOf)
	}
	return of, nil
}

// graphOf is the graph of a workflow as a run had it; nil if neither the revision in force nor
// the one before has it.
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

// newReplay is a run as run.replay opens it: nodes other than from_node and its successors
// retain their results.
func (s *State) newReplay(o Intent, a catalog.RunReplay, of *plan) (*plan, error) {
	g := s.graphOf(o.Tenant, of.View.Run)
	switch {
	case g == nil || len(g.Nodes) != len(of.View.Steps):
		return nil, illegal("/intent/args/run_id", "the workflow has changed since: only its definitions of now and of before can be repeated")
	case g.Node(a.FromNode) == nil:
		return nil, illegal("/intent/args/from_node", "the workflow has no such node")
	}
	p := s.emptyRun(o, &run{Graph: g, Intents: make(map[int]*nodeIntent), Replay: &replay{
		Freeze: a.Mode == catalog.ReplayFreeze, RepeatEffects: a.RepeatEffects, Kept: make(map[int]*nodeIntent),
	}})
	r := p.View.Run
	r.ReplayOf, r.FromNode, r.Mode, r.RepeatEffects = a.RunID, a.FromNode, a.Mode, a.RepeatEffects
	if o.Replay != nil {
		p.Run.Inputs = o.Replay.Inputs
	}
	again := behind(g, a.FromNode)
	for i, was := range of.View.Steps {
		step := &p.View.Steps[i]
		kept := keptOf(of, was, o.Replay)
		if kept != nil {
			p.Run.Replay.Kept[step.Step] = kept
			p.ByIntent[kept.ID] = intentRef{Position: kept.Position, Revision: 1, Step: step.Step}
		}
		stays := was.Status == catalog.StepSkipped || kept != nil && (kept.Status == string(intents.Done) || was.Status == catalog.StepFailed && g.Tolerates(was.ID))
		if again[was.ID] || !stays {
			continue
		}
		if step.Status = was.Status; kept != nil {
			step.Replayed, p.Run.Intents[step.Step] = kept.Position, kept
		}
	}
	if !a.RepeatEffects { // agents are frozen to their recorded replies
		return p, nil
	}
	return p, s.takeAgents(p, 0, "/intent/args/repeat_effects")
}

// keptOf is the result of a node of a run; nil if it did not end.
func keptOf(of *plan, was catalog.StepView, r *Replay) *nodeIntent {
	ref, ok := of.Nodes[was.Step]
	if !ok {
		return nil
	}
	kept := &nodeIntent{nodeRef: ref, Status: string(intents.Failed), Final: true}
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

// erased is the status of a node's result that is no longer known: the node fails.
const erased = "erased"

// behind returns a node and all its successors.
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

// kept is the result of a node in the run that is repeated; the zero value: none.
func (p *plan) kept(step int) nodeIntent {
	if p.Run.Replay != nil && p.Run.Replay.Kept[step] != nil {
		return *p.Run.Replay.Kept[step]
	}
	return nodeIntent{}
}

// read is what other nodes read of a node: the recorded result, in a freeze that has one.
func (p *plan) read(step int) *nodeIntent {
	if r := p.Run.Replay; r != nil && r.Freeze && r.Kept[step] != nil && r.Kept[step].Outputs != nil {
		return r.Kept[step]
	}
	return p.Run.Intents[step]
}

// carriedOut reports whether a node of a run is executed: in a replay only if it has no effect,
// unless people have approved more.
func (s *State) carriedOut(p *plan, step *catalog.StepView) bool {
	switch {
	case p.Run.Replay == nil || p.Run.Replay.RepeatEffects || step.Type == workflows.Python:
		return true
	case step.Type == workflows.Function:
		pin, ok, err := s.dir.SkillNamed(p.View.TenantID, step.Skills[0])
		return err == nil && ok && pin.Effect == string(catalog.Pure)
	}
	return false
}

// replays applies a replay's settings to a task of a node.
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
		step.Replayed, p.Run.Intents[t.Step], t.Kept = kept.Position, kept, true
	case r.Freeze || step.Type == workflows.Agent:
		t.Kept = true
	default:
		t.DryRun = true
	}
}

// retainedNode is how the task of a replay's node that executes nothing ends; nil if it signs an
// intent.
func (p *plan) retainedNode(s *catalog.StepView) *catalog.KeptNode {
	if t := p.taskOf(s); t == nil || !t.Kept {
		return nil
	}
	kept := p.kept(s.Step)
	out := &catalog.KeptNode{Replayed: kept.Position, Status: string(intents.Failed)}
	if kept.Status == string(intents.Done) {
		out.Intent, out.Status = kept.ID, kept.Status
	}
	return out
}

// taskOf is the last task of a step; nil if there was none.
func (p *plan) taskOf(s *catalog.StepView) *task {
	i := slices.IndexFunc(p.Tasks, func(t *task) bool { return t.ID == s.TaskID && t.Ask == "" })
	if i < 0 {
		return nil
	}
	return p.Tasks[i]
}

// MayAct refuses what a replay does not execute.
func (v *View) MayAct(tenant, plan, effect string) error {
	v.s.mu.RLock()
	defer v.s.mu.RUnlock()
	p := v.s.plans[tenant+"/"+plan]
	if p == nil || p.Run == nil || p.Run.Replay == nil || p.Run.Replay.RepeatEffects || effect == string(catalog.Pure) {
		return nil
	}
	return intents.Refuse(intents.TaskScope, "/intent/type", "the plan is a replay, which carries out only what has no effect")
}

// Source locates the inputs and outputs of a run that is to be repeated.
type Source struct {
	Start int64            // position of its workflow.start
	Nodes map[string]int64 // of the intents of done nodes, and of what ended those of agents
	Graph *workflows.Graph
}

// ReplaySource finds the run that an intent repeats.
func (v *View) ReplaySource(o Intent, a catalog.RunReplay) (src Source, err error) {
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
