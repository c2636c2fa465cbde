package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/bus"
	"aob.dev/writ/policies"
)

// dataEvery is after how many turns an operator changes the directory, so that
// not all is decided under one version of it.
const dataEvery = 5000

// player plays one turn of the generated log.
type player struct {
	*world
	t       turn
	n       int // of the turn
	made    int // orders of the turn so far
	decided *atomic.Int64
}

// turn is a user's request from plan.open to plan.close: one step that calls
// skills, reads what they gave, runs scripts and stores a result. Each turn goes
// wrong in one way too.
func (p *player) turn(ctx context.Context) (err error) {
	name := fmt.Sprintf("%08x", uint32(p.n)*2654435761) //nolint:gosec // G115: which turn is which is all that counts
	p.t = turn{user: fmt.Sprintf("u_%d", p.n%997), session: "sess_" + name, id: "turn_" + name, opened: p.config.Now(), named: true}
	p.t.plan = p.t.planID(name)
	if err := p.enter(&p.t); err != nil {
		return err
	}
	p.ok(ctx, &err, intents.RoleGateway, "plan.open", catalog.PlanOpen{PlanID: p.t.plan, Task: "Which outlets sold most last week, and why?"})
	p.ok(ctx, &err, intents.RoleManager, "plan.claim", catalog.PlanClaim{PlanID: p.t.plan, Epoch: 1, Driver: "drv_" + name})
	p.ok(ctx, &err, intents.RoleManager, "soul.get", catalog.SoulGet{})
	p.ok(ctx, &err, intents.RolePlanner, "skill.find", catalog.SkillFind{Query: "rank outlets by sales", Limit: 20})
	digest := p.ok(ctx, &err, intents.RolePlanner, "plan", catalog.Plan{PlanID: p.t.plan, Epoch: 1, Revision: 1, Steps: planSteps("")[:1]})
	p.step(ctx, &err, digest)
	p.wrong(ctx, &err)
	key := p.t.memoryKey()
	p.ok(ctx, &err, intents.RoleManager, "read_memory", catalog.ReadMemory{Key: key, Confirm: true})
	p.ok(ctx, &err, intents.RoleManager, "plan.close", catalog.PlanClose{PlanID: p.t.plan, Epoch: 1, Status: "complete", Response: "These outlets sold most."})
	if p.n%dataEvery == 0 {
		p.ok(ctx, &err, intents.RoleOperator, "admin.put", catalog.AdminPut{Tenant: tenant, Data: &catalog.Data{Key: "x.limit", Value: fmt.Append(nil, p.n)}})
	}
	return err
}

// step is the turn's one task.
func (p *player) step(ctx context.Context, err *error, digest string) {
	if *err != nil {
		return
	}
	var step catalog.Step
	if step, *err = p.firstStep(p.t, digest); *err != nil {
		return
	}
	p.ok(ctx, err, intents.RoleManager, "step", step)
	for i := range 5 {
		p.ok(ctx, err, intents.RoleTask, "skill.call", catalog.SkillCall{
			Skill: skills[i%len(skills)], Input: raw(`{"active":true,"page":%d,"region":"north","fields":["outlet_id","name","score"]}`, i),
		})
	}
	for i := range 2 {
		p.ok(ctx, err, intents.RoleTask, "read_lines", catalog.ReadLines{FileID: "file_3f9a1c", Start: 50 * i, N: 50})
		p.ok(ctx, err, intents.RoleTask, "exec_python", catalog.ExecPython{Script: script + fmt.Sprint("# ", i), Input: raw(`{"rows":[],"top":%d}`, i), TimeoutSec: 20})
	}
	p.ok(ctx, err, intents.RoleTask, "write_memory", catalog.WriteMemory{Label: "ranked", Data: raw(`[{"outlet_id":"o_%d","score":0.93,"rank":1}]`, p.n)})
	p.ok(ctx, err, intents.RoleTask, "step.finish", catalog.StepFinish{TaskID: p.t.taskID(), Status: "done", MemoryKey: p.t.memoryKey()})
}

func (t turn) memoryKey() string { return tenant + ":" + t.session + ":" + t.taskID() + ":ranked" }

// wrong is an order that is refused, another one for each turn.
func (p *player) wrong(ctx context.Context, err *error) {
	find := catalog.SkillFind{Query: "outlets"}
	switch p.n % 5 {
	case 0:
		p.order(ctx, err, intents.RoleManager, "skill.find", find, intents.KeyRole)
	case 1:
		p.order(ctx, err, intents.RolePlanner, "skill.find", map[string]any{"no": "query"}, intents.SchemaInvalid)
	case 2:
		p.order(ctx, err, intents.RolePlanner, "skill.load", catalog.SkillLoad{Skill: "unheard_of"}, intents.PolicyDenied)
	case 3:
		p.order(ctx, err, intents.RoleManager, "read_memory", catalog.ReadMemory{Key: tenant + ":nobody:nothing:ranked"}, intents.TaskScope)
	default:
		p.order(ctx, err, intents.RoleOperator, "grant.revoke", catalog.GrantRevoke{Tenant: tenant, Sub: "nobody", Before: "soon"}, intents.SchemaInvalid)
	}
}

func (p *player) ok(ctx context.Context, err *error, role intents.Role, typ string, args any) string {
	return p.order(ctx, err, role, typ, args, intents.OK)
}

// attempts at an order that a busy machine has not decided in time.
const attempts = 20

// order seals and submits one order of the turn, unless something has failed
// before, and gives its intent_id.
func (p *player) order(ctx context.Context, failed *error, role intents.Role, typ string, args any, want intents.Code) string {
	if *failed != nil {
		return ""
	}
	for range attempts {
		p.made++
		sealed, id, err := p.sealAs(role, p.t, typ, args, p.n*100+p.made)
		if err != nil {
			*failed = err
			return ""
		}
		a, err := p.router.Submit(ctx, sealed)
		if err != nil {
			*failed = fmt.Errorf("%s: %w", typ, err)
			return ""
		}
		p.decided.Add(1)
		if a.Code == want {
			return id
		}
		if a.Decision == nil || !slices.Contains(a.Decision.PolicyIDs, policies.IDEngine) {
			*failed = fmt.Errorf("%s: %s %s: %s, and should be %s", typ, a.Code, a.Pointer, a.Reason, want)
			return ""
		}
	}
	*failed = fmt.Errorf("%s: the policy takes too long each time", typ)
	return ""
}

// answering is a bus on which every executor answers at once, each with what
// its result schema asks for.
type answering struct{ bus.Conn }

// Request implements bus.Conn.
func (answering) Request(_ context.Context, subject string, data []byte) ([]byte, error) {
	report := intents.Report{Status: intents.Done, Code: intents.OK}
	switch strings.TrimPrefix(subject, "writ.exec.") {
	case "soul.get":
		report.Result = json.RawMessage(`{}`)
	case "skill.find":
		report.Result = json.RawMessage(`{"skills":[{"name":"outlet_list","description":"Lists outlets with what they sold."}]}`)
	case "skill.call":
		report.Result = json.RawMessage(`{"output":[{"outlet_id":"o_1","name":"North 1","score":0.93},{"outlet_id":"o_2","name":"North 2","score":0.71}]}`)
		report.Facts = []intents.Fact{{Event: "skill.called", Payload: json.RawMessage(`{"skill_id":"outlet_list","input_size_bytes":80,"response_size_bytes":120,"duration_ms":3}`)}}
	case "read_lines":
		report.Result = json.RawMessage(`{"lines":["a line of the file"],"more":false}`)
	case "exec_python":
		report.Result = json.RawMessage(`{"output":[1,2,3]}`)
		report.Facts = []intents.Fact{{Event: "python_script.executed", Payload: json.RawMessage(`{"exit_code":0,"duration_ms":12}`)}}
	case "write_memory", "read_memory":
		return json.Marshal(remembered(data))
	}
	return json.Marshal(report)
}

// remembered answers for the memory executor, under the key that it builds.
func remembered(data []byte) intents.Report {
	failed := intents.Report{Status: intents.Failed, Code: intents.MalformedArgs}
	var d intents.Dispatch
	var b intents.Body
	if json.Unmarshal(data, &d) != nil || json.Unmarshal(d.Payload, &b) != nil {
		return failed
	}
	done := intents.Report{Status: intents.Done, Code: intents.OK}
	var read catalog.ReadMemory
	var result any = catalog.WriteMemoryResult{SizeBytes: 40, Validated: true}
	switch {
	case b.Intent.Type == "write_memory":
		result = catalog.WriteMemoryResult{Key: b.Actor.Tenant + ":" + b.Context.SessionID + ":" + b.Context.TaskID + ":ranked", SizeBytes: 40, Validated: true}
	case json.Unmarshal(b.Intent.Args, &read) == nil:
		result = catalog.ReadMemoryResult{Key: read.Key, Data: json.RawMessage(`[{"outlet_id":"o_1","score":0.93,"rank":1}]`)}
	}
	var err error
	if done.Result, err = json.Marshal(result); err != nil {
		return failed
	}
	return done
}
