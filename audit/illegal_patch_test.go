package audit_test

import (
	"encoding/json"
	"fmt"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
)

// aPatch adds a node after the one that runs.
const aPatch = `"add_nodes":[{"id":"tell","type":"function","fn":"crm.parse","inputs":{"file":"${inputs.file}"}}],"add_edges":[{"from":"CURRENT_NODE","to":"tell"}]`

// patching is graph.patch by the planner, and its result.
func (d *dishonest) patching(patch string) (routertest.Intent, *intents.PatchInput) {
	args := catalog.GraphPatch{RunID: d.plan.ID, Patch: json.RawMessage(`{"patch_version":"0.1","justification":"to tell",` + patch + `}`)}
	o := routertest.Intent{By: d.Planner, Type: "graph.patch", Args: args}
	input := &intents.PatchInput{Current: "upload", Nodes: []intents.NodeInput{{ID: "tell", Type: "function", Fn: "crm.parse", Effect: "pure"}}, Rewired: []string{}}
	return o, input
}

// patches appends a patch as accepted.
func (d *dishonest) patches(patch string, change func(o *routertest.Intent, f *intents.PatchInput)) int64 {
	d.Helper()
	o, input := d.patching(patch)
	if change != nil {
		change(&o, input)
	}
	return d.accepted(o, func(a *appended) { a.inputs.Patch = input })
}

// patched continues where the second node of a run runs: a patch adds a node after it, and what leads to another.
func (d *dishonest) patched() {
	d.Helper()
	d.nodeRunning()
	o, _ := d.patching(adding(`{"id":"tell","type":"function","fn":"crm.parse","inputs":{"file":"${nodes.upload.outputs.items[0].id}"}}`,
		`{"from":"CURRENT_NODE","to":"tell","condition":"${nodes.upload.outputs.success == false || nodes.upload.outputs.name.startsWith('x')}"}`))
	d.Want(d.Do(o), intents.OK)
}

// patchesLegally continues with a patch after the one of the scene.
func (d *dishonest) patchesLegally() {
	d.Helper()
	_, id := d.uploads(nil)
	d.endsNode("done", id)
	d.patches(adding(`{"id":"more","type":"python","fn":"print(1)","inputs":{"id":"${nodes.upload.outputs.name}"}}`, `{"from":"upload","to":"more"}`), func(_ *routertest.Intent, f *intents.PatchInput) {
		*f = intents.PatchInput{Nodes: []intents.NodeInput{{ID: "more", Type: "python", Effect: "pure"}}, Rewired: []string{}}
	})
	d.skips(mailStep, toMail)
}

// adding is a patch of one node and one edge.
func adding(node, edge string) string {
	return fmt.Sprintf(`"add_nodes":[%s],"add_edges":[%s]`, node, edge)
}

const tellNode = `{"id":"tell","type":"function","fn":"crm.parse"}`

// noCurrent is a patch that does not name CURRENT_NODE.
func noCurrent(_ *routertest.Intent, f *intents.PatchInput) { f.Current = "" }

var patchMisdeeds = []misdeed{
	{"patch-of-another-user", "node-running", "graph.patch: the run is open, and the actor's", "of this user", func(d *dishonest) int64 {
		return d.patches(aPatch, func(o *routertest.Intent, _ *intents.PatchInput) { o.User = "ben" })
	}},
	{"patch-of-ended-run", "ran", "graph.patch: the run is open, and the actor's", "the run is complete", func(d *dishonest) int64 {
		return d.patches(adding(tellNode, `{"from":"end","to":"tell"}`), noCurrent)
	}},
	{"patch-in-a-plan", "node-running", "graph.patch: it belongs to no plan", "no intent of a plan", func(d *dishonest) int64 {
		return d.patches(aPatch, func(o *routertest.Intent, _ *intents.PatchInput) { o.Ctx.PlanID = d.plan.ID })
	}},
	{"patch-after-a-failure", "node-running", "graph.patch: no node has failed that only leads on without a condition", "only be closed as failed", func(d *dishonest) int64 {
		d.uploads(nil, func(a *appended) {
			failUndelivered(a)
			a.outcome["code"] = "EXECUTOR_FAILED"
		})
		d.endsNode("failed", "")
		return d.patches(aPatch, func(o *routertest.Intent, _ *intents.PatchInput) { o.Ctx.NodeID = "upload" })
	}},
	{"patch-of-nothing", "node-running", "graph.patch: it changes something", "changes nothing", func(d *dishonest) int64 {
		return d.patches(adding("", ""), func(_ *routertest.Intent, f *intents.PatchInput) { f.Current, f.Nodes = "", []intents.NodeInput{} })
	}},
	{"patch-id-taken", "node-running", "graph.patch: ids of nodes are new, and CURRENT_NODE is none", "is the id of node", func(d *dishonest) int64 {
		return d.patches(adding(`{"id":"end","type":"function","fn":"crm.parse"}`, ""), func(_ *routertest.Intent, f *intents.PatchInput) { f.Current, f.Nodes[0].ID = "", "end" })
	}},
	{"patch-edge-to-nowhere", "node-running", "graph.patch: edges lead from node to node, one between any two, and in no circle", "there is no node", func(d *dishonest) int64 {
		return d.patches(adding(tellNode, `{"from":"tell","to":"nobody"}`), noCurrent)
	}},
	{"patch-edge-twice", "node-running", "graph.patch: edges lead from node to node, one between any two, and in no circle", "as another edge does", func(d *dishonest) int64 {
		return d.patches(adding(tellNode, `{"from":"mail","to":"end","condition":"true"}`), func(_ *routertest.Intent, f *intents.PatchInput) { f.Current, f.Rewired = "", []string{"end"} })
	}},
	{"patch-circle", "node-running", "graph.patch: edges lead from node to node, one between any two, and in no circle", "closes a circle", func(d *dishonest) int64 {
		return d.patches(adding(tellNode, `{"from":"end","to":"tell"},{"from":"tell","to":"mail"},{"from":"mail","to":"tell"}`), func(_ *routertest.Intent, f *intents.PatchInput) { f.Current, f.Rewired = "", []string{"mail"} })
	}},
	{"patch-into-a-begun-node", "node-running", "graph.patch: no edge changes that enters a node which has begun", "never enter it", func(d *dishonest) int64 {
		return d.patches(adding(tellNode, `{"from":"tell","to":"upload"}`), func(_ *routertest.Intent, f *intents.PatchInput) { f.Current, f.Rewired = "", []string{"upload"} })
	}},
	{"patch-removes-a-begun-edge", "node-running", "graph.patch: no edge changes that enters a node which has begun", "has begun", func(d *dishonest) int64 {
		return d.patches(adding("", "")+`,"remove_edges":[{"from":"parse","to":"upload"}]`, func(_ *routertest.Intent, f *intents.PatchInput) {
			*f = intents.PatchInput{Nodes: []intents.NodeInput{}, Rewired: []string{"upload"}}
		})
	}},
	{"patch-removes-no-edge", "node-running", "graph.patch: a removed edge is there", "there is no edge", func(d *dishonest) int64 {
		return d.patches(adding("", "")+`,"remove_edges":[{"from":"parse","to":"end"}]`, func(_ *routertest.Intent, f *intents.PatchInput) {
			*f = intents.PatchInput{Nodes: []intents.NodeInput{}, Rewired: []string{}}
		})
	}},
	{"patch-without-current", "run-begun", "graph.patch: CURRENT_NODE is the context's node, or the one that runs", "0 nodes run", func(d *dishonest) int64 {
		return d.patches(aPatch, noCurrent)
	}},
	{"patch-of-another-current", "node-running", "graph.patch: CURRENT_NODE is the context's node, or the one that runs", "not what it came to", func(d *dishonest) int64 {
		return d.patches(aPatch, func(_ *routertest.Intent, f *intents.PatchInput) { f.Current = "parse" })
	}},
	{"patch-reads-what-is-not-before", "node-running", "graph.patch: templates read inputs and nodes before", "does not come before", func(d *dishonest) int64 {
		return d.patches(adding(`{"id":"tell","type":"function","fn":"crm.parse","inputs":{"file":"${nodes.mail.outputs.id}"}}`, `{"from":"CURRENT_NODE","to":"tell"}`), nil)
	}},
	{"patch-reads-what-was-not-kept", "node-running", "graph.patch: of a node that has ended templates read what its outcome keeps", "keeps no", func(d *dishonest) int64 {
		return d.patches(adding(`{"id":"tell","type":"function","fn":"crm.parse","inputs":{"file":"${nodes.parse.outputs.id}"}}`, `{"from":"CURRENT_NODE","to":"tell"}`), nil)
	}},
	{"patch-of-unapproved-skill", "node-running", "graph.patch: the skills of its functions are approved", "no approved skill", func(d *dishonest) int64 {
		return d.patches(adding(`{"id":"tell","type":"function","fn":"crm.tell"}`, `{"from":"CURRENT_NODE","to":"tell"}`), func(_ *routertest.Intent, f *intents.PatchInput) { f.Nodes[0].Fn = "crm.tell" })
	}},
	{"patch-effect-misstated", "node-running", "graph.patch: facts.patch is what it comes to", "not what it came to", func(d *dishonest) int64 {
		return d.patches(adding(`{"id":"tell","type":"function","fn":"crm.put"}`, `{"from":"CURRENT_NODE","to":"tell"}`), func(_ *routertest.Intent, f *intents.PatchInput) { f.Nodes[0].Fn = "crm.put" })
	}},
	{"patch-rewiring-hidden", "node-running", "graph.patch: facts.patch is what it comes to", "not what it came to", func(d *dishonest) int64 {
		return d.patches(adding(tellNode, `{"from":"CURRENT_NODE","to":"tell"},{"from":"tell","to":"end"}`), nil)
	}},
}
