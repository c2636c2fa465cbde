package measure

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// sample is one kind of intent in the mix.
type sample struct {
	count int // of each turn
	role  intents.Role
	typ   string
	args  func(t turn, n int) any // n tells intents of the world apart
}

// mix is what a turn signs, about as a plan with one large step does: mostly
// calls of the task, and all that the agents around it say once or twice. Every
// intent is new.
var mix = []sample{
	{10, intents.RoleTask, "skill.call", func(_ turn, n int) any {
		return catalog.SkillCall{Skill: skills[n%len(skills)], Input: raw(`{"active":true,"page":%d,"region":"north","fields":["outlet_id","name","score"]}`, n)}
	}},
	{4, intents.RoleTask, "read_lines", func(_ turn, n int) any {
		return catalog.ReadLines{FileID: "file_3f9a1c", Start: n, N: 50}
	}},
	{3, intents.RoleTask, "exec_python", func(_ turn, n int) any {
		return catalog.ExecPython{Script: script + fmt.Sprint("# ", n), Input: raw(`{"rows":[],"top":%d}`, n), TimeoutSec: 20}
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
	{2, intents.RoleManager, "soul.get", func(turn, int) any { return catalog.SoulGet{} }},
	{1, intents.RoleManager, "memory.query", func(_ turn, n int) any {
		return catalog.MemoryQuery{Text: fmt.Sprint("ranking of week ", n), Scope: "session"}
	}},
	{1, intents.RoleManager, "session.get", func(_ turn, n int) any { return catalog.SessionRef{SessionID: fmt.Sprint("sess_", n)} }},
}

var script = strings.Repeat("rows = [r for r in rows if r['active'] and r['score'] > 0.5]\n", 8)

func raw(format string, n int) json.RawMessage { return fmt.Appendf(nil, format, n) }

// eachOfMix has do done with every intent of a turn's mix.
func (w *world) eachOfMix(t turn, do func(role intents.Role, typ string, args any) error) error {
	for _, s := range mix {
		for range s.count {
			if err := do(s.role, s.typ, s.args(t, int(w.signed.Load()))); err != nil {
				return err
			}
		}
	}
	return nil
}

// signMix signs the mix for every turn, turns after one another as they come.
func (w *world) signMix() (out [][]byte, err error) {
	for _, t := range w.turns {
		err := w.eachOfMix(t, func(role intents.Role, typ string, args any) error {
			intent, _, err := w.sign(role, t, typ, args)
			out = append(out, intent)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// dataEvery is after how many turns an operator changes the directory, so that
// not all is decided under one version of it.
const dataEvery = 5000

// refusals are intents that are refused, another one for each turn.
var refusals = []struct {
	role intents.Role
	typ  string
	args any
	code intents.Code
}{
	{intents.RoleManager, "skill.find", catalog.SkillFind{Query: "outlets"}, intents.KeyRole},
	{intents.RolePlanner, "skill.find", map[string]any{"no": "query"}, intents.SchemaInvalid},
	{intents.RolePlanner, "skill.load", catalog.SkillLoad{Skill: "unheard_of"}, intents.PolicyDenied},
	{intents.RoleManager, "read_memory", catalog.ReadMemory{Key: tenant + ":nobody:nothing:ranked"}, intents.TaskScope},
	{intents.RoleOperator, "grant.revoke", catalog.GrantRevoke{Tenant: tenant, Sub: "nobody", Before: "soon"}, intents.SchemaInvalid},
}

// turn plays a user's request from plan.open to plan.close: one step that does what is in
// the mix. Each turn goes wrong in one way, too.
func (w *world) turn(ctx context.Context, n int, decided *atomic.Int64) error {
	submit := func(t turn, role intents.Role, typ string, args any, want intents.Code) error {
		decided.Add(1)
		_, err := w.submit(ctx, role, t, typ, args, want)
		return err
	}
	t, err := w.open(ctx, n)
	if err != nil {
		return err
	}
	decided.Add(4) // that open it
	err = w.eachOfMix(t, func(role intents.Role, typ string, args any) error {
		return submit(t, role, typ, args, intents.OK)
	})
	if err != nil {
		return err
	}
	no := refusals[n%len(refusals)]
	if err := submit(t, no.role, no.typ, no.args, no.code); err != nil {
		return err
	}
	ends := catalog.PlanClose{PlanID: t.plan, Epoch: 1, Status: "failed", Failure: &catalog.Failure{Reason: "infeasible: no data", CompletedSteps: []int{}}}
	if err := submit(t, intents.RoleManager, "plan.close", ends, intents.OK); err != nil || n%dataEvery != 0 {
		return err
	}
	return submit(t, intents.RoleOperator, "admin.put", catalog.AdminPut{Tenant: tenant, Data: &catalog.Data{Key: "x.limit", Value: fmt.Append(nil, n)}}, intents.OK)
}

// answering is a bus on which every executor answers at once, each with what
// its result schema asks for.
type answering struct{ bus.Conn }

// answers are what they answer.
var answers = map[string]intents.Report{
	"soul.get":     {Result: json.RawMessage(`{}`)},
	"skill.find":   {Result: json.RawMessage(`{"skills":[{"name":"outlet_list","description":"Lists outlets with what they sold."}]}`)},
	"skill.load":   {Result: raw(`{"name":"outlet_list","description":"Lists outlets with what they sold.","input_schema":{},"output_schema":{},"execution_mode":"sync","endpoint":"shop","effect":"pure","digest":"sha256:%064d"}`, 0)},
	"memory.query": {Result: json.RawMessage(`{"hits":[],"by":"words"}`)},
	"session.get":  {Result: json.RawMessage(`{"session_id":"sess_1","user_id":"ana","status":"active","started_at":"2026-01-31T00:00:00Z","last_active":"2026-01-31T00:00:00Z","turn_history":[]}`)},
	"skill.call": {
		Result: json.RawMessage(`{"output":[{"outlet_id":"o_1","name":"North 1","score":0.93},{"outlet_id":"o_2","name":"North 2","score":0.71}]}`),
		Events: []intents.ReportedEvent{{Event: "skill.called", Payload: json.RawMessage(`{"skill_id":"outlet_list","input_size_bytes":80,"response_size_bytes":120,"duration_ms":3}`)}},
	},
	"read_lines": {Result: json.RawMessage(`{"lines":["a line of the file"],"more":false}`)},
	"exec_python": {
		Result: json.RawMessage(`{"output":[1,2,3]}`),
		Events: []intents.ReportedEvent{{Event: "python_script.executed", Payload: json.RawMessage(`{"exit_code":0,"duration_ms":12}`)}},
	},
	"write_memory": {Result: json.RawMessage(`{"key":"default:sess_1:task_1:ranked","size_bytes":40,"validated":true}`)},
}

// Request implements bus.Conn.
func (answering) Request(_ context.Context, subject string, _ []byte) ([]byte, error) {
	report := answers[strings.TrimPrefix(subject, "writ.exec.")]
	report.Status, report.Code = intents.Done, intents.OK
	return json.Marshal(report)
}
