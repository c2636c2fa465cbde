package bench

import (
	"encoding/json"
	"fmt"
	"strings"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// sample is one kind of order in the mix.
type sample struct {
	count int // of each turn
	role  intents.Role
	typ   string
	args  func(t turn, n int) any // n tells orders of the world apart
}

// mix is what a turn orders, about as a plan with one large step does: mostly
// calls of the task, and all that the agents around it say once or twice. Every
// order is new, and so is every plan that a policy is shown.
var mix = []sample{
	{10, intents.RoleTask, "skill.call", func(_ turn, n int) any {
		return catalog.SkillCall{Skill: skills[n%len(skills)], Input: raw(`{"active":true,"page":%d,"region":"north","fields":["outlet_id","name","score"]}`, n)}
	}},
	{4, intents.RoleTask, "read_lines", func(_ turn, n int) any {
		return catalog.ReadLines{FileID: "file_3f9a1c", Start: n, N: 50}
	}},
	{3, intents.RoleTask, "exec_python", func(_ turn, n int) any {
		return catalog.ExecPython{Script: script + fmt.Sprint("# ", n), From: "file_3f9a1c", TimeoutSec: 20}
	}},
	{2, intents.RoleTask, "write_memory", func(_ turn, n int) any {
		return catalog.WriteMemory{Label: "ranked", Data: raw(`[{"outlet_id":"o_%d","rank":1,"score":0.93},{"outlet_id":"o_7","rank":2,"score":0.88},{"outlet_id":"o_12","rank":3,"score":0.71}]`, n)}
	}},
	{1, intents.RoleTask, "memory.query", func(_ turn, n int) any {
		return catalog.MemoryQuery{Text: fmt.Sprint("outlets ranked last week ", n), TopK: 5}
	}},
	{1, intents.RoleTask, "step.finish", func(t turn, n int) any {
		return catalog.StepFinish{TaskID: t.taskID(), Status: "failed", Reason: fmt.Sprint("no data for week ", n)}
	}},
	{3, intents.RolePlanner, "skill.find", func(_ turn, n int) any {
		return catalog.SkillFind{Query: fmt.Sprint("rank outlets by sales ", n), Limit: 20}
	}},
	{2, intents.RolePlanner, "skill.load", func(_ turn, n int) any { return catalog.SkillLoad{Skill: skills[n%len(skills)]} }},
	{1, intents.RolePlanner, "plan", func(t turn, n int) any {
		return catalog.Plan{PlanID: t.draft, Epoch: 1, Revision: 1, Steps: planSteps(fmt.Sprint(" of region ", n))}
	}},
	{2, intents.RoleManager, "soul.get", func(turn, int) any { return catalog.SoulGet{} }},
	{1, intents.RoleManager, "memory.query", func(_ turn, n int) any {
		return catalog.MemoryQuery{Text: fmt.Sprint("ranking of week ", n), Scope: "session"}
	}},
	{1, intents.RoleManager, "plan.list", func(turn, int) any { return catalog.PlanList{} }},
	{1, intents.RoleGateway, "plan.open", func(t turn, n int) any {
		return catalog.PlanOpen{PlanID: t.planID(fmt.Sprint("c", n)), Task: "Which outlets sold most last week, and why?"}
	}},
}

var script = strings.Repeat("rows = [r for r in rows if r['active'] and r['score'] > 0.5]\n", 8)

func raw(format string, n int) json.RawMessage { return fmt.Appendf(nil, format, n) }

// sealMix seals the mix for every turn, turns after one another as they come.
func (w *world) sealMix() ([][]byte, error) {
	var out [][]byte
	for _, t := range w.turns {
		next, err := w.beside(t, "next")
		if err != nil {
			return nil, err
		}
		for _, s := range mix {
			in := t
			if s.typ == "plan.open" {
				in = next
			}
			for range s.count {
				order, _, err := w.seal(s.role, in, s.typ, s.args(in, w.sealed))
				if err != nil {
					return nil, fmt.Errorf("%s: %w", s.typ, err)
				}
				out = append(out, order)
			}
		}
	}
	return out, nil
}
