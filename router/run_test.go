package router_test

import (
	"context"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/router/routertest"
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
  - {id: end, type: function, fn: crm.parse, inputs: {order: "${nodes.upload.order}"}}
edges:
  - {from: parse, to: upload, condition: "nodes.parse.outputs.count > 2"}
  - {from: upload, to: ok, condition: "${nodes.upload.outputs.success == true}"}
  - {from: upload, to: bad, condition: "${nodes.upload.outputs.success == false}"}
  - {from: ok, to: end}
  - {from: bad, to: end}
`

// flowWorld has the workflow of these tests, and skills that answer with what its graph reads.
func flowWorld(t *testing.T, o routertest.Options) *routertest.World {
	w := routertest.New(t, o)
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

func next(told catalog.Told) (out string) {
	for _, n := range told.Next {
		out += n.Next + " "
		out += string(rune('0' + n.Step))
		out += ";"
	}
	return out
}

// TestRun: a run goes from its start to its end by the orders of its driver and its nodes' tasks.
func TestRun(t *testing.T) {
	w := flowWorld(t, routertest.Options{})
	r := w.BegunRun("r1", "lead", `{"file":"f1"}`)
	n := r.Begin("parse")
	if got := string(n.Told.Args); got != `{"input":{"file":"f1"},"skill":"crm.parse"}` {
		t.Fatal(got)
	}
	if got := next(n.Done()); got != "run 2;" {
		t.Fatal(got)
	}
	up := r.Begin("upload")
	if got := string(up.Told.Args); got != `{"input":{"key":"up/`+r.ID+`","rows":[1,2]},"skill":"crm.put"}` {
		t.Fatal(got)
	}
	if got := next(up.Done()); got != "run 3;skip 4;" {
		t.Fatal(got)
	}
	r.Want(r.Do(r.SkipOrder("bad")), intents.OK)
	ok := r.Begin("ok")
	if got := string(ok.Told.Args); got != `{"input":{"subject":"x7"},"skill":"crm.mail"}` {
		t.Fatal(got)
	}
	ok.Done()
	refused(t, r.Close("complete"), intents.MalformedArgs, "complete when each node")
	r.Begin("end").Done()
	r.Want(r.Close("complete"), intents.OK)
}
