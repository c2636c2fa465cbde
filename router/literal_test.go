package router_test

import (
	"encoding/json"
	"strings"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/router/routertest"
)

// TestLiteralInputsMatchSchemas: a push, a start and a patch are refused where literal inputs break the schema with
// which the skill was approved.
func TestLiteralInputsMatchSchemas(t *testing.T) {
	approve := func(w *routertest.World, schema string) *intents.Answer {
		a := catalog.SkillApprove{Tenant: "default", Skill: "crm.parse", Digest: intents.Digest([]byte("crm.parse")), Effect: catalog.Pure}
		a.InputSchema = json.RawMessage(schema)
		return w.Admin("skill.approve", a)
	}
	const schema = `{"type":"object","properties":{"n":{"type":"integer"},"file":{}},"additionalProperties":false}`
	w := flowWorld(t)
	r := w.BegunRun("r1", "lead", `{"file":"f1"}`)
	r.Begin("parse")
	w.Want(approve(w, schema), intents.OK)
	adds := func(inputs string) string {
		return `{"patch_version":"0.1","justification":"j","add_edges":[{"from":"CURRENT_NODE","to":"x"}],"add_nodes":[{"id":"x","type":"function","fn":"parse","inputs":` + inputs + `}]}`
	}
	a := r.Do(r.PatchOrder("parse", adds(`{"n":"one","file":"${inputs.file}"}`)))
	refused(t, a, intents.MalformedArgs, "must be integer")
	if a.Pointer != "/intent/args/patch/add_nodes/0/inputs/n" {
		t.Error(a.Pointer)
	}
	a = r.Do(r.PatchOrder("parse", adds(`{"m":"${inputs.file}"}`)))
	refused(t, a, intents.MalformedArgs, "unknown member")
	r.Want(r.Do(r.PatchOrder("parse", adds(`{"n":"${inputs.file}"}`))), intents.OK) // what comes of it the node's call shows

	flow := func(n string) map[string]string {
		return map[string]string{"workflows/x": "workflow_id: x\nversion: '1'\ndescription: d\nnodes:\n  - {id: a, type: function, fn: crm.parse, inputs: {n: " + n + "}}\nedges: []\n"}
	}
	refused(t, w.Admin("registry.push", w.RegistryOf("default", 2, flow("one"))), intents.MalformedArgs, "workflow x: node a, /inputs/n: must be integer")
	w.PushAgents(2, flow("1"))
	w.Want(approve(w, strings.Replace(schema, "integer", "boolean", 1)), intents.OK)
	refused(t, w.Do(w.NewPlan("r2").StartOrder("x", `{}`)), intents.MalformedArgs, "must be boolean")

	refused(t, approve(w, `{"type":"nothing"}`), intents.MalformedArgs, "is no JSON Schema")
	refused(t, approve(w, `{"title":"`+strings.Repeat("x", catalog.MaxInputSchema)+`"}`), intents.MalformedArgs, "more than")
}
