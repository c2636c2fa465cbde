package workflows

import (
	"encoding/json"
	"testing"
)

const upload = `
workflow_id: lead_flow
version: 1.0.0
description: Uploads a lead and tells people.
inputs:
  type: object
  properties:
    file: {type: string}
    priority: {type: string}
    n: {type: integer}
  required: [file]
nodes:
  - {id: parse, type: python, fn: "print(1)", inputs: {file: "${inputs.file}"}}
  - {id: upload, type: function, fn: s3.put, inputs: {key: "uploads/${run_id}.bin", rows: "${nodes.parse.outputs.rows}"}, retry: {max: 2, backoff_sec: 5}}
  - {id: ok, type: function, fn: email_send, inputs: {subject: "OK ${run_id} ${nodes.upload.outputs.items[0].name}"}}
  - {id: bad, type: approval, inputs: {title: "Failed", detail: "x"}}
  - {id: end, type: agent, fn: general, inputs: {task: "Say it", order: "${nodes.upload.order}"}}
edges:
  - {from: parse, to: upload, condition: "nodes.parse.outputs.count > 2 && inputs.priority == 'high'"}
  - {from: upload, to: ok, condition: "${nodes.upload.outputs.success == true}"}
  - {from: upload, to: bad, condition: "${nodes.upload.outputs.success == false}"}
  - {from: ok, to: end}
  - {from: bad, to: end}
`

func TestParse(t *testing.T) {
	d, faults := Parse("workflows/a.yaml", []byte(upload))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	text, err := json.Marshal(d.Graph)
	t.Log(string(text), err)
	g := new(Graph)
	if err := json.Unmarshal(text, g); err != nil {
		t.Fatal(err)
	}
	v := Values{RunID: "plan_1", Inputs: json.RawMessage(`{"file":"f","priority":"high"}`), Nodes: map[string]NodeValue{}}
	for _, n := range g.Next(v) {
		t.Logf("%+v", n)
	}
	out := g.Cut("parse", json.RawMessage(`{"rows":[1,2],"count":3,"more":true}`), true)
	v.Nodes["parse"] = NodeValue{Status: Done, Order: "sha256:1", Outputs: out}
	t.Logf("%s", out)
	for _, n := range g.Next(v) {
		t.Logf("%+v", n)
	}
	typ, args, err := g.Order("upload", v)
	t.Logf("%s %s %v", typ, args, err)
	t.Logf("%+v", g.Ready("upload", v))
	v.Nodes["upload"] = NodeValue{Status: Failed, Outputs: g.Cut("upload", nil, false)}
	for _, n := range g.Next(v) {
		t.Logf("%+v", n)
	}
}
