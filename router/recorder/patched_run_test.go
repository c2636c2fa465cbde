package recorder_test

import (
	"encoding/json"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/storage"
)

const twoNodes = `
workflow_id: hold
version: "1"
description: Waits.
nodes:
  - {id: a, type: python, fn: print(1)}
  - {id: w, type: approval, inputs: {title: Go on, detail: x}}
edges: [{from: a, to: w}]
`

// TestPatchedRun: a run that was patched and has ended is projected whole, with the added nodes.
func TestPatchedRun(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	w.PushAgents(1, map[string]string{"workflows/hold": twoNodes})
	r := w.BegunRun("r1", "hold", `{}`)
	patch := `{"patch_version":"0.1","add_nodes":[{"id":"c","type":"python","fn":"print(1)"}],"add_edges":[{"from":"a","to":"c"}],"remove_edges":[],"justification":"x"}`
	w.OK(routertest.Intent{By: w.Gateway, Type: "graph.patch", Args: catalog.GraphPatch{RunID: r.ID, Patch: json.RawMessage(patch)}})
	w.Want(r.Cancel(w.Gateway), intents.OK)
	d := documents(t)
	if aside := followRecords(w, w.Journal, d).SetAside(); len(aside) != 0 {
		t.Errorf("set aside: %v", aside)
	}
	doc, err := d.Get(t.Context(), "default", storage.IndexPlans, r.ID)
	w.Must(err)
	var p catalog.PlanView
	w.Must(json.Unmarshal(doc.Body, &p))
	if len(p.Steps) != 3 || p.Steps[2].ID != "c" || p.Steps[2].Task != "python" || p.Status != catalog.PlanFailed {
		t.Errorf("%+v", p)
	}
}
