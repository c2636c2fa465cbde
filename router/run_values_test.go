package router_test

import (
	"strings"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/blobdir"
)

// TestRunReadsReplies: the output of an agent's node is read as its reply, or member by member if
// it is an object.
func TestRunReadsReplies(t *testing.T) {
	w := flowWorld(t)
	w.PushAgents(2, map[string]string{
		"knives": strings.Replace(strings.Replace(knives, "server: spoon, name: buy", "server: crm, name: parse", 1), "limits: {time_limit_sec: 40}", "", 1),
		"workflows/say": `
workflow_id: say
version: 1.0.0
description: Two agents speak, and what they say is read.
nodes:
  - {id: plain, type: agent, fn: knives, inputs: {task: "Say it."}}
  - {id: object, type: agent, fn: knives, inputs: {task: "Say it."}}
  - {id: use, type: function, fn: crm.parse, inputs: {text: "${nodes.plain.outputs.reply}", city: "${nodes.object.outputs.city}"}}
edges:
  - {from: plain, to: use, condition: "nodes.plain.outputs.success"}
  - {from: object, to: use, condition: "nodes.object.outputs.n > 2"}
`,
	})
	r := w.BegunRun("r1", "say", `{}`)
	plain, object := r.Begin("plain"), r.Begin("object")
	w.Want(plain.Reply("Knives are out."), intents.OK)
	w.Want(object.Reply(`{"city":"Oslo","n":3}`), intents.OK)
	if got := string(r.Begin("use").NodeIntent.Args); got != `{"input":{"city":"Oslo","text":"Knives are out."},"skill":"crm.parse"}` {
		t.Error(got)
	}
	w.Reopen()
}

// TestRunOfAResultInAFile: a node whose result went to a file gives the next one that file by the
// id of its intent.
func TestRunOfAResultInAFile(t *testing.T) {
	blobs, err := blobdir.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := routertest.New(t, routertest.Options{Blobs: blobs})
	w.PushAgents(1, map[string]string{"workflows/large": `
workflow_id: large
version: 1.0.0
description: Makes much, and reads it.
nodes:
  - {id: make, type: python, fn: "print(1)"}
  - {id: read, type: python, fn: "print(2)", from: "${nodes.make.intent}"}
edges: [{from: make, to: read}]
`})
	r := w.BegunRun("r1", "large", `{}`)
	file, err := blobs.Put(t.Context(), storage.Scope{Tenant: "default", Plan: r.ID, Revision: 1, Step: 1}, strings.NewReader(strings.Repeat("x", 60_000)))
	w.Must(err)
	w.Bus.On("exec_python", routertest.Always(routertest.Done(catalog.ExecPythonResult{
		Reference: &catalog.Reference{FileID: file.ID, SizeBytes: file.Size, SHA256: file.SHA256, Sample: []string{"x"}},
	})))
	r.Begin("make").Done()
	r.Begin("read").Done()
	calls := w.Bus.Calls("exec_python")
	if in := calls[1].Ticket.Inputs; len(in) != 1 || in[0].Ref != file.ID || in[0].SHA256 != file.SHA256 || in[0].Size != file.Size || in[0].Step != 1 {
		t.Errorf("%+v", in)
	}
}

// TestPatchedRunsAreListed: a run is listed once it is patched, as long as tasks of it live.
func TestPatchedRunsAreListed(t *testing.T) {
	r, one, two := patchWorld(t, catalog.Pure)
	if got := r.Dir.PatchedRuns(); len(got) != 0 {
		t.Errorf("before the patch: %+v", got)
	}
	r.Want(r.Do(r.PatchIntent("two", referencePatch)), intents.OK)
	if got := r.Dir.PatchedRuns(); len(got) != 1 || got[0].Plan.PlanID != r.ID || got[0].Plan.Revision != 2 {
		t.Errorf("after it: %+v", got)
	}
	one.Done()
	two.Done()
	if got := r.Dir.PatchedRuns(); len(got) != 0 {
		t.Errorf("without a task: %+v", got)
	}
}
