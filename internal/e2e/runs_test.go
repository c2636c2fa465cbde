package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/node"
)

// intake has each type of node but an approval, a retry, and a branch for failures.
const intake = `workflow_id: intake
version: "1"
description: Fetches counts, adds them up, uploads the total and tells people.
inputs:
  type: object
  properties:
    first: {type: integer}
  required: [first]
nodes:
  - {id: fetch, type: function, fn: lab.fetch, inputs: {first: "${inputs.first}"}}
  - id: sum
    type: python
    fn: |
      import json
      print(json.dumps({"total": sum(json.load(open(input_file))["counts"])}))
    inputs: {counts: "${nodes.fetch.outputs.counts}"}
  - {id: upload, type: function, fn: lab.upload, inputs: {total: "${nodes.sum.outputs.total}"}, retry: {max: 1, backoff_sec: 1}}
  - {id: thank, type: function, fn: lab.notify, inputs: {text: "uploaded ${nodes.upload.outputs.url} in ${run_id}"}}
  - {id: alarm, type: function, fn: lab.notify, inputs: {text: "the upload of ${nodes.sum.outputs.total} failed"}}
  - {id: tell, type: agent, fn: teller, inputs: {task: "Say what came of it.", total: "${nodes.sum.outputs.total}"}}
edges:
  - {from: fetch, to: sum}
  - {from: sum, to: upload, condition: "nodes.sum.outputs.total > 0"}
  - {from: upload, to: thank, condition: "${nodes.upload.outputs.success == true}"}
  - {from: upload, to: alarm, condition: "${nodes.upload.outputs.success == false}"}
  - {from: thank, to: tell}
  - {from: alarm, to: tell}
`

const tellerFile = `name: teller
description: Tells people what came of a run.
`

// echoAgent is a mind whose agent repeats its message.
func echoAgent() model.Model {
	return ofRegistry{&mind{}, "teller", func(req model.Request) *model.Response {
		return &model.Response{Text: "I was told: " + req.Messages[len(req.Messages)-1].Text, Model: "test:scripted"}
	}}
}

// startRun starts a run and gives its id.
func (s *system) startRun(who person, workflow string, inputs map[string]any) string {
	s.t.Helper()
	var v catalog.PlanView
	if inputs == nil {
		inputs = map[string]any{}
	}
	status, p := s.call(who, http.MethodPost, "/v1/runs", map[string]any{"workflow_id": workflow, "inputs": inputs}, &v)
	if status != http.StatusCreated || v.Run == nil {
		s.t.Fatalf("start: HTTP %d %+v", status, p)
	}
	return v.PlanID
}

func (s *system) runOf(who person, id string) catalog.PlanView {
	s.t.Helper()
	var v catalog.PlanView
	if status, p := s.call(who, http.MethodGet, "/v1/runs/"+id, nil, &v); status != http.StatusOK {
		s.t.Fatalf("run: HTTP %d %+v", status, p)
	}
	return v
}

// runUntil reads a run again and again until it is as a test wants it.
func (s *system) runUntil(who person, id, what string, is func(catalog.PlanView) bool) catalog.PlanView {
	s.t.Helper()
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	for deadline := time.After(patience); ; {
		v := s.runOf(who, id)
		if is(v) {
			return v
		}
		select {
		case <-look.C:
		case <-deadline:
			s.t.Fatalf("%s: %s %v %+v", what, v.Status, nodes(v), v.Failure)
		}
	}
}

func ended(v catalog.PlanView) bool {
	return v.Status == catalog.PlanComplete || v.Status == catalog.PlanFailed
}

// nodes are the statuses of a run's nodes, as "id status".
func nodes(v catalog.PlanView) (out []string) {
	for _, s := range v.Steps {
		out = append(out, s.ID+" "+string(s.Status))
	}
	return out
}

func waits(id string) func(catalog.PlanView) bool {
	return func(v catalog.PlanView) bool { return slices.Contains(nodes(v), id+" held") }
}

// TestRun: a run of all its kinds of nodes takes the branch of success after one retry, and
// that of failure when there is none left. Calls held by policy wait for people.
func TestRun(t *testing.T) {
	t.Parallel()
	l := serveLab(t, nil)
	s := start(t, setup{Limits: node.Limits{Requests: -1}, Model: echoAgent(), Skills: []string{l.skills}, Agents: registryDir(t, map[string]string{"agents/teller.yaml": tellerFile, "workflows/intake.yaml": intake})})
	ben, _, _ := s.holds("lab.notify")
	ana := s.as("ana")
	for name, c := range map[string]struct {
		fails   int
		branch  string
		nodes   []string
		text    string
		uploads int
	}{
		"success": {1, "thank", []string{"fetch done", "sum done", "upload done", "thank done", "alarm skipped", "tell done"}, "uploaded s3://lab/", 2},
		"failure": {2, "alarm", []string{"fetch done", "sum done", "upload failed", "thank skipped", "alarm done", "tell done"}, "the upload of ", 2},
	} {
		l.failUploads(c.fails)
		before, told := len(l.uploaded()), len(l.notifications())
		id := s.startRun(ana, "intake", map[string]any{"first": 3})
		s.runUntil(ana, id, "it waits", waits(c.branch))
		last, seen := s.streamEnd(ana, id, "")
		if last != "held" {
			t.Errorf("%s: the stream ends with %s", name, last)
		}
		held := s.inbox(ana)
		if len(held) != 1 || held[0].PlanID != id {
			t.Fatalf("%s: held %+v", name, held)
		}
		if _, p := s.decide(ben, held[0].IntentID, catalog.DecisionApprove, ""); p.Code != "" {
			t.Fatalf("%s: %+v", name, p)
		}
		if last, _ := s.streamEnd(ana, id, seen); last != "done" {
			t.Errorf("%s: the stream ends with %s", name, last)
		}
		v := s.runUntil(ana, id, "it ends", ended)
		if d := cmp.Diff(c.nodes, nodes(v)); d != "" || v.Status != catalog.PlanComplete {
			t.Errorf("%s: %s %+v %s", name, v.Status, v.Failure, d)
		}
		ids := l.uploaded()[before:]
		if slices.Sort(ids); len(slices.Compact(ids)) != c.uploads {
			t.Errorf("%s: uploads %v", name, ids)
		}
		if said := l.notifications()[told:]; len(said) != 1 || !strings.HasPrefix(said[0], c.text) {
			t.Errorf("%s: said %q", name, said)
		}
	}
}

// TestRunKilled: writ dies while a node reads, while a node acts, and while a node waits for
// people. After each start the run goes on: what is done stays, and each effect happens once.
func TestRunKilled(t *testing.T) {
	t.Parallel()
	fetch, upload := newGate(), newGate()
	l := serveLab(t, map[string]*gate{"fetch": fetch, "upload": upload})
	x := boot(t, echoAgent(), l.skills, "--agents", registryDir(t, map[string]string{"agents/teller.yaml": tellerFile, "workflows/intake.yaml": intake}))
	ben, _, _ := x.holds("lab.notify")
	me := x.as("ana")
	id := x.startRun(me, "intake", map[string]any{"first": 3})
	fetch.wait(t)
	x.kill()
	x.start()
	upload.wait(t)
	before := x.runOf(me, id)
	x.kill()
	x.start()
	x.runUntil(me, id, "it waits", waits("thank"))
	x.kill()
	x.start()
	held := x.inbox(me)
	if len(held) != 1 {
		t.Fatalf("held %+v", held)
	}
	if _, p := x.decide(ben, held[0].IntentID, catalog.DecisionApprove, ""); p.Code != "" {
		t.Fatalf("%+v", p)
	}
	v := x.runUntil(me, id, "it ends", ended)
	if d := cmp.Diff([]string{"fetch done", "sum done", "upload done", "thank done", "alarm skipped", "tell done"}, nodes(v)); d != "" || v.Status != catalog.PlanComplete {
		t.Errorf("%s %+v %s", v.Status, v.Failure, d)
	}
	if before.Steps[1].TaskID != v.Steps[1].TaskID || v.Epoch < 4 {
		t.Errorf("the node sum ran again: %+v, then %+v, epoch %d", before.Steps[1], v.Steps[1], v.Epoch)
	}
	if ids := l.uploaded(); len(ids) != 2 || ids[0] != ids[1] {
		t.Errorf("uploads %v", ids)
	}
	if said := l.notifications(); len(said) != 1 {
		t.Errorf("said %q", said)
	}
	if list := x.records(id); len(list) == 0 { // verified again
		t.Error("no intents")
	}
}

// TestRunKeepsItsGraph: a workflow is replaced while a run of it waits. The run goes on as it
// began; the next one is of the new version.
func TestRunKeepsItsGraph(t *testing.T) {
	t.Parallel()
	l := serveLab(t, nil)
	dir := registryDir(t, map[string]string{"workflows/ask.yaml": ask})
	s := start(t, setup{Limits: node.Limits{Requests: -1}, Skills: []string{l.skills}, Agents: dir})
	ben, _, _ := s.holds("lab.notify")
	ana := s.as("ana")
	id := s.startRun(ana, "ask", nil)
	s.runUntil(ana, id, "it waits", waits("notify"))
	text := strings.NewReplacer(`version: "1"`, `version: "2"`, "text: hello", "text: goodbye").Replace(ask)
	if err := os.WriteFile(filepath.Join(dir, "workflows", "ask.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s.await("the new version", func() bool {
		var rows []catalog.SchemaRow
		s.call(ana, http.MethodGet, "/schemas/?kind=workflow&name=ask", nil, &rows)
		return len(rows) == 1 && strings.Contains(string(rows[0].Schema), `"version":"2"`)
	})
	if next := s.runOf(ana, s.startRun(ana, "ask", nil)); next.Run.Version != "2" {
		t.Errorf("the next run is of version %s", next.Run.Version)
	}
	for _, h := range s.inbox(ben) {
		if h.PlanID != id {
			continue
		}
		if _, p := s.decide(ben, h.IntentID, catalog.DecisionApprove, ""); p.Code != "" {
			t.Fatalf("%+v", p)
		}
	}
	v := s.runUntil(ana, id, "it ends", ended)
	if said := l.notifications(); v.Status != catalog.PlanComplete || v.Run.Version != "1" || len(said) != 1 || said[0] != "hello" {
		t.Errorf("%s, version %s, said %q", v.Status, v.Run.Version, said)
	}
}

// TestRunAsksPeople: a node asks people; with their answer the run goes on, and without it
// fails.
func TestRunAsksPeople(t *testing.T) {
	t.Parallel()
	s := start(t, setup{Limits: node.Limits{Requests: -1}, Agents: registryDir(t, map[string]string{"workflows/sign.yaml": `workflow_id: sign
version: "1"
description: Asks people, then goes on.
nodes:
  - {id: ask, type: approval, inputs: {title: "Shall it go on?", detail: "The run ${run_id} asks."}}
  - {id: on, type: python, fn: 'print("true")'}
edges:
  - {from: ask, to: on}
`})})
	ben, _, _ := s.holds("nothing.at_all")
	ana := s.as("ana")
	for decision, want := range map[string][]string{catalog.DecisionApprove: {"ask done", "on done"}, catalog.DecisionReject: {"ask failed", "on pending"}} {
		id := s.startRun(ana, "sign", nil)
		s.runUntil(ana, id, "it waits", waits("ask"))
		held := s.inbox(ben)
		if len(held) != 1 || held[0].Type != "approval.ask" || held[0].PlanID != id {
			t.Fatalf("held %+v", held)
		}
		if _, p := s.decide(ben, held[0].IntentID, decision, "so it is"); p.Code != "" {
			t.Fatalf("%+v", p)
		}
		v := s.runUntil(ana, id, "it ends", ended)
		if d := cmp.Diff(want, nodes(v)); d != "" || (v.Failure != nil) != (decision == catalog.DecisionReject) {
			t.Errorf("%s: %s %+v %s", decision, v.Status, v.Failure, d)
		}
		if v.Failure != nil && !strings.HasPrefix(v.Failure.Reason, "node ask failed: ") {
			t.Errorf("failed: %s", v.Failure.Reason)
		}
	}
}
