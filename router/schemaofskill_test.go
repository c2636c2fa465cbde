package router_test

import (
	"encoding/json"
	"strings"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
)

// uploads is what the skill of the reference patch takes.
const uploads = `{"type":"object","required":["bucket","principal"],"additionalProperties":false,"properties":{
  "bucket":{"type":"string"},"key_template":{"type":"string","maxLength":5},"parts":{"type":"array","items":{"type":"integer"}},"principal":{"type":"string"}}}`

func approvedWith(w *routertest.World, skill, schema string) {
	w.Helper()
	w.Want(w.Admin("skill.approve", catalog.SkillApprove{
		Tenant: "default", Skill: skill, Digest: intents.Digest([]byte(skill + schema)), Effect: catalog.Pure, InputSchema: json.RawMessage(schema),
	}), intents.OK)
}

// TestPatchAgainstSchemas: plain-text inputs of a new node must match its skill's schema, as
// approved. A template may become anything, and the principal is filled in.
func TestPatchAgainstSchemas(t *testing.T) {
	r, _, _ := patchWorld(t, catalog.Pure)
	approvedWith(r.World, "aws.s3_upload", uploads)
	with := func(inputs string) routertest.Intent {
		return r.PatchIntent("two", strings.Replace(referencePatch, `"inputs":{"bucket":"acme","key_template":"uploads/${run_id}.bin"}`, inputs, 1))
	}
	const at = "/intent/args/patch/add_nodes/0/inputs"
	for _, tt := range []struct{ name, inputs, pointer string }{
		{"type", `"inputs":{"bucket":7}`, at + "/bucket"},
		{"in a list", `"inputs":{"bucket":"b","parts":[1,"two","${run_id}"]}`, at + "/parts/1"},
		{"too long", `"inputs":{"bucket":"b","key_template":"plain text"}`, at + "/key_template"},
		{"missing", `"inputs":{"key_template":"${run_id}"}`, at + "/bucket"},
		{"unknown", `"inputs":{"bucket":"b","bukket":"${run_id}"}`, at + "/bukket"}, // its value is unknown, but its name is known
		{"none", `"timeout_sec":9`, at + "/bucket"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := r.Do(with(tt.inputs))
			if a.Code != intents.MalformedArgs || a.Pointer != tt.pointer || !strings.Contains(a.Reason, "the skill s3_upload does not take this") {
				t.Errorf("%s at %s: %s", a.Code, a.Pointer, a.Reason)
			}
		})
	}
	if v := r.View(); v.Revision != 1 {
		t.Errorf("revision %d after refused patches", v.Revision)
	}
	r.Want(r.Do(r.PatchIntent("two", referencePatch)), intents.OK)
	r.Reopen()
}

// TestWorkflowAgainstSchemas: a registry whose graph gives an approved skill inputs that do not
// match is refused, and so is the start of a workflow whose skill was approved again.
func TestWorkflowAgainstSchemas(t *testing.T) {
	w := flowWorld(t)
	approvedWith(w, "crm.parse", `{"type":"object","properties":{"n":{"type":"integer"}}}`)
	flow := func(n string) map[string]string {
		return map[string]string{"workflows/one": "\nworkflow_id: one\nversion: 1.0.0\ndescription: One node.\nnodes:\n  - {id: a, type: function, fn: crm.parse, inputs: {n: " + n + "}}\nedges: []\n"}
	}
	refused(t, w.Admin("registry.push", w.RegistryOf("default", 2, flow(`"many"`))), intents.MalformedArgs, "the node a of the workflow one gives the skill crm.parse what it does not take: /inputs/n: ")
	w.PushAgents(2, flow("3"))
	w.BegunRun("r1", "one", `{}`)
	approvedWith(w, "crm.parse", `{"type":"object","properties":{"n":{"type":"string"}}}`)
	p := w.NewPlan("r2")
	a := w.Do(p.StartIntent("one", `{}`))
	refused(t, a, intents.MalformedArgs, "its node a gives the skill crm.parse what it does not take: /inputs/n: ")
	if a.Pointer != "/intent/args/workflow_id" {
		t.Error(a.Pointer)
	}
	w.Pin("crm.parse", catalog.Pure) // without a schema nothing is checked
	w.Want(w.Do(p.StartIntent("one", `{}`)), intents.OK)
	w.Reopen()
}
