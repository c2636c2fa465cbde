package audit_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"aob.dev/writ/audit"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/policies"
	"aob.dev/writ/storage"
)

// notThis denies calls of rank with what their input is in the test.
const notThis = `package writ.ext.seen

# METADATA
# title: Not this value
# description: Nothing is done with this value.
# custom:
#   id: ext.seen
deny contains {"id": "ext.seen", "reason": "Nothing is done with this value."} if {
	input.intent.args.skill == "rank"
	input.intent.args.input == [1, 2]
}
`

// TestInputsOfThen: who decides again sees the inputs that the router saw, from the record alone; and
// another policy is tried on them. A record that claims another input is bad.
func TestInputsOfThen(t *testing.T) {
	w := newWorld(t)
	w.Pin("rank", catalog.Pure)
	p := w.Begun("p9", "rank")
	task := p.Started(1)
	script := w.OK(task.Intent("exec_python", catalog.ExecPython{Script: "print(1)"}))
	call := catalog.SkillCall{Skill: "rank", From: script.IntentID}
	good := w.Want(w.Do(task.Intent("skill.call", call)), intents.OK)
	strict := w.with("ext/seen.rego", func(string) string { return notThis })
	b, err := audit.BacktestRecords(t.Context(), w.source(w.Journal), audit.Trial{New: strict})
	w.Must(err)
	if len(b.Flips) != 1 || b.Flips[0].IntentID != good.IntentID || b.Flips[0].Rule != "ext.seen" || b.Unreplayable != 0 {
		t.Errorf("backtest: %+v", b)
	}
	bundle := w.export(w.Journal, audit.Selection{})
	if b, err = audit.BacktestBundle(t.Context(), bytes.NewReader(bundle), audit.Trial{New: strict}); err != nil || len(b.Flips) != 1 || b.Unreplayable != 0 {
		t.Errorf("backtest of a bundle: %+v %v", b, err)
	}
	// Under the policy, the call is denied, and replays as that.
	tree := strict.Source()
	for _, content := range tree {
		w.blobs.put(content)
	}
	w.blobs.put(tree.Manifest())
	_, err = w.Policy.ReplaceTree(t.Context(), policies.Tree{Source: tree}, w.Router.SelfProof)
	w.Must(err)
	w.Must(w.Router.PolicyChanged(t.Context()))
	call.From = w.OK(task.Intent("exec_python", catalog.ExecPython{Script: "print(2)"})).IntentID
	denied := w.Want(w.Do(task.Intent("skill.call", call)), intents.PolicyDenied)
	bundle = w.export(w.Journal, audit.Selection{})
	if r := w.verify(bundle, audit.Options{Trust: w.trust(), Replay: true}); r.FirstBad != nil || r.Replayed == 0 {
		t.Errorf("replay: %+v", r)
	}
	forge := func(name string, id string, change func(*intents.DecisionInputs)) {
		for _, rec := range w.Records() {
			if rec.Kind != storage.KindIntent || !strings.Contains(string(rec.Parts[storage.PartDecision]), id) {
				continue
			}
			forged := w.rewritten(rec.Position, func(r *storage.Record) {
				var f intents.DecisionInputs
				w.Must(json.Unmarshal(r.Parts[storage.PartInputs], &f))
				change(&f)
				raw, err := json.Marshal(f)
				w.Must(err)
				r.Parts[storage.PartInputs] = raw
			})
			if r := w.verify(w.export(forged, audit.Selection{}), audit.Options{Trust: w.trust(), Replay: true}); r.FirstBad == nil {
				t.Errorf("%s: %+v", name, r)
			}
		}
	}
	forge("another input", good.IntentID, func(f *intents.DecisionInputs) { f.Inputs[0].SHA256 = intents.Digest([]byte("[3]")) })
	forge("no input", denied.IntentID, func(f *intents.DecisionInputs) { f.Inputs = nil })
}
