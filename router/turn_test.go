package router_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// line of the table of one turn: position, kind and, for intents, type and role.
func line(t *testing.T, r storage.Record) string {
	t.Helper()
	switch r.Kind {
	case storage.KindIntent:
		s, err := state.ReadIntent(r)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%d %s %s %s %s", r.Position, s.Type, s.Signer, s.Decision.Effect, s.Decision.Code)
	case storage.KindOutcome:
		out, of, err := state.OutcomeOf(r)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%d outcome of %d %s", r.Position, of, out.Code)
	default:
		return fmt.Sprintf("%d %s", r.Position, r.Kind)
	}
}

// One turn, record by record.
func TestOneTurn(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	p := w.TwoSteps()
	want := strings.Split(strings.TrimSpace(`
0 control
1 skill.approve operator idempotent OK
2 outcome of 1 OK
3 skill.approve operator idempotent OK
4 outcome of 3 OK
5 plan.open gateway idempotent OK
6 outcome of 5 OK
7 plan.claim manager idempotent OK
8 outcome of 7 OK
9 soul.get manager pure OK
10 outcome of 9 OK
11 skill.find planner pure OK
12 outcome of 11 OK
13 skill.load planner pure OK
14 outcome of 13 OK
15 skill.load planner pure OK
16 outcome of 15 OK
17 plan planner idempotent OK
18 outcome of 17 OK
19 step manager idempotent OK
20 outcome of 19 OK
21 skill.call task pure OK
22 outcome of 21 OK
23 read_lines task pure OK
24 outcome of 23 OK
25 exec_python task pure OK
26 outcome of 25 OK
27 write_memory task idempotent OK
28 outcome of 27 OK
29 step.finish task idempotent OK
30 outcome of 29 OK
31 read_memory manager idempotent OK
32 outcome of 31 OK
33 step manager idempotent OK
34 outcome of 33 OK
35 read_memory task idempotent OK
36 outcome of 35 OK
37 skill.call task pure OK
38 outcome of 37 OK
39 write_memory task idempotent OK
40 outcome of 39 OK
41 step.finish task idempotent OK
42 outcome of 41 OK
43 read_memory manager idempotent OK
44 outcome of 43 OK
45 plan.close manager idempotent OK
46 outcome of 45 OK`), "\n")
	var got []string
	for _, r := range w.Records() {
		got = append(got, line(t, r))
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	v := p.View()
	if v.Status != catalog.PlanComplete || v.Response != "These." || v.ReplanCount != 0 || v.CompletedAt == nil || v.IntentHistory != nil {
		t.Errorf("%+v", v)
	}
	for i, s := range v.Steps {
		if s.Status != catalog.StepDone || s.Revision != 1 || s.MemoryKey == "" || !s.Validated || s.StartedAt == nil || s.FinishedAt == nil {
			t.Errorf("step %d: %+v", i+1, s)
		}
	}
}

// A ticket contains what was decided, and for a task what its step allows.
func TestTickets(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	p := w.TwoSteps()
	digest := w.Policy.Engine().Digest()
	for _, typ := range []string{"soul.get", "skill.find", "skill.load", "skill.call", "read_lines", "exec_python", "write_memory", "read_memory"} {
		row, _ := catalog.Builtin().Lookup(typ)
		for _, c := range w.Bus.Calls(typ) {
			k := c.Ticket
			if k.Type != typ || k.Executor != row.Executor || k.Attempt != 1 || k.PolicyDigest != digest || !k.Deadline.Equal(w.Clock.Now().Add(row.Run())) {
				t.Errorf("%s: %+v", typ, k)
			}
			if k.Actor.UserID != "ana" || k.Actor.Tenant != "default" || !cmp.Equal(k.Actor.Roles, []string{"user"}) || k.Actor.Session != routertest.Session {
				t.Errorf("%s: actor %+v", typ, k.Actor)
			}
			rec, err := w.Journal.Get(t.Context(), k.Position)
			w.Must(err)
			if s, err := state.ReadIntent(rec); err != nil || s.Decision.IntentID != k.IntentID {
				t.Errorf("%s: position %d holds %s", typ, k.Position, s.Decision.IntentID)
			}
			if (k.Scope != nil) != (c.Body.Context.TaskID != "") {
				t.Errorf("%s: scope %+v", typ, k.Scope)
			}
		}
	}
	call := w.Bus.Calls("skill.call")[1].Ticket
	step := p.View().Steps[1]
	want := &intents.TaskScopeClaim{
		Task: step.TaskID, Plan: routertest.PlanID("plan_1"), Revision: 1, Step: 2, Skills: []string{"rank"},
		InputKey: p.View().Steps[0].MemoryKey, Deadline: call.Scope.Deadline, ReturnSpec: call.Scope.ReturnSpec,
	}
	if d := cmp.Diff(want, call.Scope); d != "" {
		t.Error(d)
	}
	var spec catalog.ReturnSpec
	w.Must(json.Unmarshal(call.Scope.ReturnSpec, &spec))
	if spec != step.ReturnSpec {
		t.Errorf("return_spec %+v", spec)
	}
	if len(call.Pins) != 1 || call.Pins[0].Skill != "rank" || call.Pins[0].Effect != "pure" {
		t.Errorf("pins of skill.call: %+v", call.Pins)
	}
	if found := w.Bus.Calls("skill.find")[0].Ticket.Pins; len(found) != 2 {
		t.Errorf("pins of skill.find: %+v", found)
	}
	written := w.Bus.Calls("write_memory")[0].Ticket.Inputs
	if len(written) != 1 || written[0].Pointer != "/data" || string(written[0].Value) != "[1,2]" || written[0].SHA256 != intents.Digest([]byte("[1,2]")) {
		t.Errorf("inputs of write_memory: %+v", written)
	}
}

// The record of an intent is enough to decide it again: the signed bytes, the grant, the decision,
// and the inputs of policy beyond the intent.
func TestRecordParts(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	task := started(w, catalog.Once)
	a := w.Want(task.Call("feed", `{}`), intents.OK)
	rec, err := w.Journal.Get(t.Context(), *a.Position)
	w.Must(err)
	var signed intents.Signed
	w.Must(json.Unmarshal(rec.Parts[storage.PartEnvelope], &signed))
	u, err := signed.Open()
	w.Must(err)
	if u.ID() != a.IntentID {
		t.Errorf("the record names %s", u.ID())
	}
	var inputs struct {
		Signer struct{ KID, Role string }
		Roles  []string
		Task   struct {
			TaskID string `json:"task_id"`
		}
		Plan  struct{ Epoch int }
		Skill struct{ Name, Effect string }
		Now   string
	}
	w.Must(json.Unmarshal(rec.Parts[storage.PartInputs], &inputs))
	if inputs.Signer.KID != task.Key.KID || inputs.Signer.Role != "task" || inputs.Task.TaskID != task.TaskID || inputs.Plan.Epoch != 1 ||
		inputs.Skill.Name != "feed" || inputs.Skill.Effect != "once" || inputs.Now != intents.FormatTime(w.Clock.Now()) {
		t.Errorf("facts %s", rec.Parts[storage.PartInputs])
	}
	if _, ok := rec.Parts[storage.PartGrant]; !ok {
		t.Error("no grant")
	}
	if r := receipt(w, a); r.RecordDigest != rec.Digest() {
		t.Error("the receipt names another record")
	}
}
