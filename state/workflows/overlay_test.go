package workflows

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
)

// inFlight is a run of which a is done, b and d run, again is tried again, and c waits.
func inFlight(t *testing.T) (*Graph, Values) {
	t.Helper()
	d, faults := Parse("w.yaml", []byte(`
workflow_id: w
version: "1"
description: d
inputs: {type: object, properties: {file: {type: string}}}
nodes:
  - {id: a, type: function, fn: s.t}
  - {id: b, type: function, fn: s.t, inputs: {x: "${nodes.a.outputs.x}"}}
  - {id: c, type: function, fn: s.t, inputs: {x: "${nodes.b.outputs.x}"}}
  - {id: d, type: function, fn: s.t}
  - {id: again, type: function, fn: s.t, retry: {max: 1}}
edges:
  - {from: a, to: b}
  - {from: b, to: c}
  - {from: d, to: again}
`))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	return d.Graph, Values{RunID: "plan_1", Inputs: json.RawMessage(`{"file":"f"}`), Nodes: map[string]NodeValue{
		"a": {Status: Done, Outputs: d.Cut("a", json.RawMessage(`{"x":1,"other":2}`), true)}, "b": {Status: Running}, "d": {Status: Running},
		"again": {Status: Pending, Begun: true},
	}}
}

// TestPatchRefused: each patch has one fault.
func TestPatchRefused(t *testing.T) {
	text, err := os.ReadFile("testdata/patches.json")
	if err != nil {
		t.Fatal(err)
	}
	var rows []struct {
		Name, At, Want string
		Patch          Patch
	}
	if err := json.Unmarshal(text, &rows); err != nil || len(rows) < 20 {
		t.Fatal(len(rows), err)
	}
	g, v := inFlight(t)
	before, _ := json.Marshal(g)
	for _, row := range rows {
		_, _, err := g.Overlay(row.Patch, row.At, v)
		// CEL's text after the colon is not compared.
		if err == nil || err.Error() != row.Want && (!strings.HasSuffix(row.Want, ": ") || !strings.HasPrefix(err.Error(), row.Want)) {
			t.Errorf("%s: got  %v\nwant %s", row.Name, err, row.Want)
		}
	}
	if after, _ := json.Marshal(g); string(after) != string(before) {
		t.Errorf("a refused patch changed the graph: %s", after)
	}
}

// reference is the example patch of the protocol.
const reference = `{
  "patch_version": "0.1",
  "add_nodes": [
    {"id":"upload_to_s3","type":"function","fn":"s3_upload","inputs":{"bucket":"acme","key_template":"uploads/${run_id}.bin"}},
    {"id":"notify_email","type":"function","fn":"email_send","inputs":{"to":"ops@acme.com","subject":"Upload OK ${run_id}"}},
    {"id":"notify_slack","type":"function","fn":"slack_post","inputs":{"channel_alias":"incidents","text":"Upload FAILED ${run_id}"}}
  ],
  "add_edges": [
    {"from":"CURRENT_NODE","to":"upload_to_s3"},
    {"from":"upload_to_s3","to":"notify_email","condition":"${nodes.upload_to_s3.outputs.success == true}"},
    {"from":"upload_to_s3","to":"notify_slack","condition":"${nodes.upload_to_s3.outputs.success == false}"}
  ],
  "justification": "Notify stakeholders after file upload"
}`

// TestReferencePatch: it is accepted while two nodes run, and each of its branches is taken.
func TestReferencePatch(t *testing.T) {
	g, v := inFlight(t)
	var p Patch
	if err := json.Unmarshal([]byte(reference), &p); err != nil {
		t.Fatal(err)
	}
	patched, at, err := g.Overlay(p, "b", v)
	if err != nil || at != "b" || len(g.RewiredNodes(patched)) > 0 {
		t.Fatal(at, err)
	}
	next := func() map[string]string {
		out := map[string]string{}
		for _, n := range patched.Next(v) {
			out[n.Node] = n.Next
		}
		return out
	}
	if got := next(); got["upload_to_s3"] != Wait || got["notify_email"] != Wait {
		t.Errorf("before its node has ended: %v", got)
	}
	v.Nodes["b"] = NodeValue{Status: Done, Outputs: patched.Cut("b", json.RawMessage(`{"x":1}`), true)}
	typ, args, err := patched.Intent("upload_to_s3", v)
	if got := next(); got["upload_to_s3"] != Run || typ != "skill.call" || err != nil ||
		string(args) != `{"input":{"bucket":"acme","key_template":"uploads/plan_1.bin"},"skill":"s3_upload"}` {
		t.Errorf("%v: %s %s %v", got, typ, args, err)
	}
	v.Nodes["upload_to_s3"] = NodeValue{Status: Done, Outputs: patched.Cut("upload_to_s3", nil, true)}
	if got := next(); got["notify_email"] != Run || got["notify_slack"] != Skip {
		t.Errorf("after it went well: %v", got)
	}
	v.Nodes["upload_to_s3"] = NodeValue{Status: Failed, Outputs: patched.Cut("upload_to_s3", nil, false)}
	if got := next(); got["notify_email"] != Skip || got["notify_slack"] != Run || !patched.Tolerates("upload_to_s3") {
		t.Errorf("after it failed: %v", got)
	}
}

// TestCutOff: a node that loses its last incoming edge is skipped, and a node with a new one
// waits for it.
func TestCutOff(t *testing.T) {
	d, faults := Parse("w.yaml", []byte(`{"workflow_id":"w","version":"1","description":"d","nodes":[
		{"id":"a","type":"function","fn":"s.t"},{"id":"b","type":"function","fn":"s.t"}],"edges":[{"from":"a","to":"b"}]}`))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	v := Values{Nodes: map[string]NodeValue{"a": {Status: Running}}}
	cut, at, err := d.Overlay(Patch{RemoveEdges: []EdgeName{{"CURRENT_NODE", "b"}}}, "", v)
	if err != nil || at != "a" || !slices.Equal(d.RewiredNodes(cut), []string{"b"}) {
		t.Fatal(at, err, d.RewiredNodes(cut))
	}
	if got := cut.Ready("b", v).Next; got != Skip {
		t.Errorf("without its edge: %s", got)
	}
	more, _, err := cut.Overlay(Patch{AddNodes: []Node{{ID: "c", Type: Function, Fn: "s.t"}}}, "", v)
	if err != nil || more.Ready("b", v).Next != Skip || more.Ready("c", v).Next != Run {
		t.Errorf("after another patch: %v", err)
	}
	again, _, err := more.Overlay(Patch{AddEdges: []Edge{{From: "c", To: "b"}}}, "", v)
	if err != nil || again.Ready("b", v).Next != Wait {
		t.Errorf("with another edge: %v", err)
	}
}

// TestPatchKeepsReads: a patch extends the outputs that a running node's outcome retains.
func TestPatchKeepsReads(t *testing.T) {
	g, v := inFlight(t)
	p := Patch{AddNodes: []Node{{ID: "x", Type: Function, Fn: "s.t", Inputs: json.RawMessage(`{"y":"${nodes.b.outputs.y.z[0]}"}`)}}, AddEdges: []Edge{{From: "b", To: "x"}}}
	patched, _, err := g.Overlay(p, "", v)
	if err != nil {
		t.Fatal(err)
	}
	if got := patched.Node("b").Outputs; !slices.Equal(got, []string{"/x", "/y/z"}) || len(g.Node("b").Outputs) != 1 {
		t.Errorf("kept: %v, before %v", got, g.Node("b").Outputs)
	}
}
