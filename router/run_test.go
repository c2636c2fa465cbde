package router_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/storage/blobdir"
)

const leadFlow = `
workflow_id: lead
version: 1.0.0
description: Uploads a lead and tells people.
inputs:
  type: object
  properties: {file: {type: string}, n: {type: integer}}
  required: [file]
  additionalProperties: false
nodes:
  - {id: parse, type: function, fn: crm.parse, inputs: {file: "${inputs.file}"}}
  - {id: upload, type: function, fn: crm.put, inputs: {key: "up/${run_id}", rows: "${nodes.parse.outputs.rows}"}, retry: {max: 2, backoff_sec: 5}}
  - {id: ok, type: function, fn: crm.mail, inputs: {subject: "${nodes.upload.outputs.id}"}}
  - {id: bad, type: function, fn: crm.mail, inputs: {subject: "failed"}}
  - {id: end, type: function, fn: crm.parse, inputs: {intent: "${nodes.upload.intent}"}}
edges:
  - {from: parse, to: upload, condition: "nodes.parse.outputs.count > 2"}
  - {from: upload, to: ok, condition: "${nodes.upload.outputs.success == true}"}
  - {from: upload, to: bad, condition: "${nodes.upload.outputs.success == false}"}
  - {from: ok, to: end}
  - {from: bad, to: end}
`

// flowWorld has the workflow of these tests, and skills that answer with what its graph reads.
func flowWorld(t *testing.T) *routertest.World {
	t.Helper()
	w := routertest.New(t, routertest.Options{})
	w.Pin("crm.parse", catalog.Pure)
	w.Pin("crm.put", catalog.Once)
	w.Pin("crm.mail", catalog.Idempotent)
	w.Data("approval", `{"once":false}`)
	w.PushAgents(1, map[string]string{"workflows/lead": leadFlow})
	w.Bus.On("skill.call", leads)
	return w
}

func leads(_ context.Context, _ routertest.Call) intents.Report {
	return routertest.Done(map[string]any{"output": map[string]any{"count": 3, "rows": []int{1, 2}, "id": "x7", "more": "not kept"}})
}

func next(told catalog.PlanDetails) (out string) {
	for _, n := range told.Next {
		out += n.Next + " "
		out += string(rune('0' + n.Step))
		out += ";"
	}
	return out
}

// TestRun: a run goes from its start to its end by the intents of its driver and its nodes' tasks.
func TestRun(t *testing.T) {
	w := flowWorld(t)
	r := w.BegunRun("r1", "lead", `{"file":"f1"}`)
	n := r.Begin("parse")
	if got := string(n.NodeIntent.Args); got != `{"input":{"file":"f1"},"skill":"crm.parse"}` {
		t.Fatal(got)
	}
	if got := next(n.Done()); got != "run 2;" {
		t.Fatal(got)
	}
	up := r.Begin("upload")
	if got := string(up.NodeIntent.Args); got != `{"input":{"key":"up/`+r.ID+`","rows":[1,2]},"skill":"crm.put"}` {
		t.Fatal(got)
	}
	if got := next(up.Done()); got != "run 3;skip 4;" {
		t.Fatal(got)
	}
	r.Want(r.Do(r.SkipIntent("bad")), intents.OK)
	ok := r.Begin("ok")
	if got := string(ok.NodeIntent.Args); got != `{"input":{"subject":"x7"},"skill":"crm.mail"}` {
		t.Fatal(got)
	}
	ok.Done()
	refused(t, r.Close("complete"), intents.MalformedArgs, "complete when each node")
	r.Begin("end").Done()
	r.Want(r.Close("complete"), intents.OK)
}

// TestRunOfAFile: an input of a run that names an artifact by its digest is the node's input; a
// missing artifact fails the node. A later node works on an earlier one's result.
func TestRunOfAFile(t *testing.T) {
	blobs, err := blobdir.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := routertest.New(t, routertest.Options{Blobs: blobs})
	w.PushAgents(1, map[string]string{"workflows/read": `
workflow_id: read
version: 1.0.0
description: Counts the words of a file.
inputs: {type: object, properties: {file: {type: string}}, required: [file], additionalProperties: false}
nodes:
  - {id: count, type: python, fn: "print(1)", from: "${inputs.file}"}
  - {id: again, type: python, fn: "print(2)", from: "${nodes.count.intent}"}
edges: [{from: count, to: again}]
`})
	ref, _, err := blobs.Keep(t.Context(), "default", strings.NewReader("three small words"))
	w.Must(err)
	w.Bus.On("exec_python", routertest.Always(routertest.Done(catalog.ExecPythonResult{Output: []byte(`3`)})))
	r := w.BegunRun("r1", "read", `{"file":"`+ref+`"}`)
	r.Begin("count").Done()
	r.Begin("again").Done()
	calls := w.Bus.Calls("exec_python")
	if in := calls[0].Ticket.Inputs; len(in) != 1 || in[0].Ref != ref || in[0].SHA256 != strings.TrimPrefix(ref, "cas://") || in[0].Size != 17 {
		t.Errorf("the file: %+v", in)
	}
	if in := calls[1].Ticket.Inputs; len(in) != 1 || string(in[0].Value) != "3" {
		t.Errorf("what was made of it: %+v", in)
	}
	missing := w.BegunRun("r2", "read", `{"file":"cas://`+intents.Digest([]byte("nothing"))+`"}`).Begin("count")
	w.Want(missing.Sign(), intents.MalformedArgs)
	w.Want(missing.Ends("failed", ""), intents.OK)
}

// TestRunOutsideGraph: an intent of a driver, or of the task of a node, that the graph does not
// allow is refused.
func TestRunOutsideGraph(t *testing.T) {
	w := flowWorld(t)
	p := w.NewPlan("r0")
	bad := func(change func(*routertest.Intent), code intents.Code, pointer, reason string) {
		t.Helper()
		o := p.StartIntent("lead", `{"file":"f1"}`)
		change(&o)
		a := w.Do(o)
		if refused(t, a, code, reason); a.Pointer != pointer {
			t.Errorf("at %s, want %s", a.Pointer, pointer)
		}
	}
	args := func(a catalog.WorkflowStart) func(*routertest.Intent) {
		if a.RunID == "" {
			a.RunID = p.ID
		}
		return func(o *routertest.Intent) { o.Args, o.Ctx.PlanID = a, a.RunID }
	}
	bad(args(catalog.WorkflowStart{WorkflowID: "leda", Inputs: raw(`{"file":"f"}`)}), intents.MalformedArgs, "/intent/args/workflow_id", "did you mean lead?")
	bad(args(catalog.WorkflowStart{WorkflowID: "lead", Inputs: raw(`{"file":7}`)}), intents.MalformedArgs, "/intent/args/inputs/file", "")
	bad(args(catalog.WorkflowStart{WorkflowID: "lead", Inputs: raw(`{}`)}), intents.MalformedArgs, "/intent/args/inputs/file", "is required")
	bad(args(catalog.WorkflowStart{WorkflowID: "lead", Inputs: raw(`{"file":"f"}`), RunID: "r"}), intents.MalformedArgs, "/intent/args/run_id", "")
	w.Want(w.Admin("admin.put", catalog.AdminPut{Tenant: "default", Role: &catalog.RoleData{Role: "clerk", Capabilities: []string{"plans:*", "runs:start:other"}}}), intents.OK)
	bad(func(o *routertest.Intent) { o.Roles = []string{"clerk"} }, intents.RBACForbidden, "/actor", "runs:start:lead")
	bad(func(o *routertest.Intent) { o.By = w.Workflow }, intents.KeyRole, "/sig", "")

	r := w.BegunRun("r1", "lead", `{"file":"f1"}`)
	step := func(node string, change func(*routertest.Intent), code intents.Code, reason string) {
		t.Helper()
		o, _ := r.BeginIntent(node)
		if change != nil {
			change(&o)
		}
		refused(t, w.Do(o), code, reason)
	}
	none := func(*routertest.Intent) {}
	step("upload", nil, intents.MalformedArgs, "has not ended")
	step("parse", func(o *routertest.Intent) { o.By = w.Manager }, intents.TaskScope, "workflow keys move runs")
	refused(t, w.Do(r.SkipIntent("parse")), intents.MalformedArgs, "says: run")
	refused(t, w.Do(r.SkipIntent("upload")), intents.MalformedArgs, "has not ended")
	manager := r.CloseIntent("failed")
	manager.By = w.Manager
	refused(t, w.Do(manager), intents.TaskScope, "workflow keys move runs")
	planned := w.Begun("p1", "feed")
	other := planned.ClaimIntent(2)
	other.By = w.Workflow
	refused(t, w.Do(other), intents.TaskScope, "managers other plans")

	n := r.Begin("parse")
	step("parse", none, intents.MalformedArgs, "one live task")
	sign := func(n *routertest.Node, change func(*routertest.Intent), code intents.Code, pointer string) {
		t.Helper()
		o := n.SignIntent()
		change(&o)
		if a := w.Want(w.Do(o), code); a.Pointer != pointer {
			t.Errorf("at %s, want %s", a.Pointer, pointer)
		}
	}
	call := func(args string) func(*routertest.Intent) {
		return func(o *routertest.Intent) { o.Args = raw(args) }
	}
	sign(n, call(`{"skill":"crm.parse","input":{"file":"f2"}}`), intents.TaskScope, "/intent/args/input/file")
	sign(n, call(`{"skill":"crm.parse","input":{"file":"f1","more":1}}`), intents.TaskScope, "/intent/args/input/more")
	sign(n, call(`{"skill":"crm.put","input":{"file":"f1"}}`), intents.TaskScope, "/intent/args/skill")
	sign(n, func(o *routertest.Intent) { o.Type, o.Args = "exec_python", catalog.ExecPython{Script: "print(1)"} }, intents.TaskScope, "/intent/type")
	sign(n, func(o *routertest.Intent) { o.Ctx.Occurrence = 1 }, intents.TaskScope, "/context/occurrence")
	refused(t, n.Ends("done", "sha256:"+zeros), intents.MalformedArgs, "which is done")
	signed := w.Want(n.Sign(), intents.OK)
	sign(n, func(o *routertest.Intent) { o.Key = "again" }, intents.ConflictIdempotency, "/intent/args")
	refused(t, n.Ends("failed", ""), intents.MalformedArgs, "is done")
	w.Want(n.Ends("done", signed.IntentID), intents.OK)
	step("parse", none, intents.MalformedArgs, "not the next step")
	if n := len(w.Bus.Calls("skill.call")); n != 1 {
		t.Errorf("%d calls", n)
	}
}

const zeros = "0000000000000000000000000000000000000000000000000000000000000000"

func raw(s string) json.RawMessage { return json.RawMessage(s) }

// TestRunRetries: a failed node is tried again if its definition says so, from a time on, and never
// once its intent may have acted.
func TestRunRetries(t *testing.T) {
	w := flowWorld(t)
	begin := func(id string) *routertest.Run {
		r := w.BegunRun(id, "lead", `{"file":"f1"}`)
		w.Bus.On("skill.call", leads)
		r.Begin("parse").Done()
		return r
	}
	r := begin("r1")
	w.Bus.On("skill.call", nil) // nobody listens: nothing was sent
	up := r.Begin("upload")
	w.Want(up.Sign(), intents.DispatchUnavailable)
	told := routertest.DetailsOf(w, w.Want(up.Ends("failed", ""), intents.OK))
	if len(told.Next) != 1 || told.Next[0].RetryAt == nil || !told.Next[0].RetryAt.Equal(w.Clock.Now().Add(5*time.Second)) {
		t.Fatalf("%+v", told.Next)
	}
	o, _ := r.BeginIntent("upload")
	refused(t, w.Do(o), intents.MalformedArgs, "tried again from")
	w.Clock.Move(5 * time.Second)
	w.Bus.On("skill.call", leads)
	up = r.Begin("upload")
	if up.NodeIntent.Occurrence != 1 {
		t.Errorf("occurrence %d", up.NodeIntent.Occurrence)
	}
	up.Done()
	if v := r.View(); v.Steps[1].Attempts != 1 || v.Steps[1].Status != catalog.StepDone {
		t.Errorf("%+v", v.Steps[1])
	}

	r = begin("r2")
	w.Bus.On("skill.call", routertest.Always(routertest.Failed(intents.ExecutorFailed))) // it was sent
	up = r.Begin("upload")
	w.Want(up.Sign(), intents.ExecutorFailed)
	told = routertest.DetailsOf(w, w.Want(up.Ends("failed", ""), intents.OK))
	if got := next(told); got != "skip 3;run 4;" {
		t.Errorf("next: %s", got)
	}
	w.Want(w.Do(r.SkipIntent("ok")), intents.OK)
	w.Bus.On("skill.call", leads)
	r.Begin("bad").Done()
	end := r.Begin("end")
	w.Bus.On("skill.call", routertest.Always(routertest.Failed(intents.ExecutorFailed)))
	w.Want(end.Sign(), intents.ExecutorFailed)
	w.Want(end.Ends("failed", ""), intents.OK)
	refused(t, r.Close("complete"), intents.MalformedArgs, "complete when each node")
	w.Want(r.Close("failed"), intents.OK)
}

// TestNodeResolved: a router died while the call of a node was in flight. The node continues by the
// operator's resolution of the call: it is made again, or it is done.
func TestNodeResolved(t *testing.T) {
	for status, calls := range map[string]int{"failed": 2, "done": 1} {
		w := flowWorld(t)
		r := w.BegunRun("r1", "lead", `{"file":"f1"}`)
		r.Begin("parse").Done()
		upload := r.Begin("upload")
		w, open := left(w, upload.SignIntent())
		w.Start()
		w.Bus.On("skill.call", leads)
		before := len(w.Bus.Calls("skill.call")) - 1 // the one that died
		w.Want(w.Admin("intent.resolve", catalog.IntentResolve{IntentID: open.IntentID, Status: status, Reason: "seen at the other end"}), intents.OK)
		r.Plan = r.Plan.On(w)
		r.Claimed()
		next := r.Begin("upload")
		a := w.Want(next.Sign(), intents.OK)
		w.Want(next.Ends("done", a.IntentID), intents.OK)
		if n := len(w.Bus.Calls("skill.call")) - before; n != calls || a.Replayed != (status == "done") {
			t.Errorf("%s: %d calls, %+v", status, n, a)
		}
	}
}
