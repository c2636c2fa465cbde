package audit_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"aob.dev/writ/audit"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/policies"
	"aob.dev/writ/storage"
)

// TestTenant: one tenant's export holds nothing of another's, is provably
// complete where it carries the leaves, and says so where it is not.
func TestTenant(t *testing.T) {
	w := newWorld(t)
	w.live(16)
	some := w.export(w.Journal, audit.Selection{Tenant: "acme"})
	r := w.verify(some, audit.Options{Trust: w.trust(), Replay: true})
	if !r.OK || r.Complete || r.Intents < 2 || !strings.Contains(r.String(), "completeness: unproven") {
		t.Fatalf("%+v %v", r, r.FirstBad)
	}
	if bytes.Contains(some, []byte(`plan_1\"`)) {
		t.Error("the export of acme holds a plan of default")
	}
	all := w.export(w.Journal, audit.Selection{Tenant: "acme", Complete: true})
	if r := w.verify(all, audit.Options{Trust: w.trust(), Replay: true}); !r.OK || !r.Complete {
		t.Fatalf("%+v %v", r, r.FirstBad)
	}
	// Leave one of the tenant's intents out, and retain its leaf.
	var out bytes.Buffer
	hidden := int64(-1)
	for line := range bytes.Lines(all) {
		var l struct {
			Record *audit.Entry `json:"record"`
		}
		w.Must(json.Unmarshal(line, &l))
		if e := l.Record; e != nil && hidden < 0 && e.Kind == storage.KindIntent && strings.Contains(string(*e.Parts["envelope"].Text), `\"tenant\":\"acme\",\"user_id\":\"ana\"`) {
			hidden = e.Position
			leaves, err := w.source(w.Journal).Ledger.Leaves(t.Context(), hidden, hidden+1, w.Journal.Next())
			w.Must(err)
			line = fmt.Appendf(nil, `{"leaf":%s}`+"\n", leaves[0])
		}
		out.Write(line)
	}
	none := w.export(w.Journal, audit.Selection{Tenant: "nobody", Complete: true})
	if r := w.verify(none, audit.Options{Trust: w.trust()}); !r.OK || r.Complete {
		t.Errorf("nothing shows that the tag key is the tenant's: %+v %v", r, r.FirstBad)
	}
	if r := w.verify(out.Bytes(), audit.Options{Trust: w.trust()}); r.OK || r.FirstBad.Position != hidden || !strings.Contains(r.FirstBad.Reason, "left out") {
		t.Errorf("record %d is hidden: %v", hidden, r.FirstBad)
	}
}

// TestSince: an export from a time on carries what its records rest on, and
// shows that the log continues the auditor's last checkpoint.
func TestSince(t *testing.T) {
	w := newWorld(t)
	w.live(10)
	before := header(t, w.export(w.Journal, audit.Selection{})).Last
	half := w.Begun("plan_half", "earthquake_feed").Started(1)
	w.Clock.Move(time.Second)
	since := w.Clock.Now()
	w.Want(half.Call("earthquake_feed", `{}`), intents.OK)
	half.Done()
	w.live2()
	whole := w.export(w.Journal, audit.Selection{})
	bundle := w.export(w.Journal, audit.Selection{Since: since, Checkpoint: before})
	trust := w.trust()
	trust.Checkpoint = before
	r := w.verify(bundle, audit.Options{Trust: trust, Replay: true})
	if !r.OK || r.Complete || r.From == 0 || r.Records >= w.Journal.Next() || len(bundle) >= len(whole) {
		t.Fatalf("%+v %v", r, r.FirstBad)
	}
	if r := w.verify(w.export(w.Journal, audit.Selection{Since: since}), audit.Options{Trust: trust}); r.OK || !strings.Contains(r.FirstBad.Reason, "--since-checkpoint") {
		t.Errorf("no way from the pinned checkpoint: %v", r.FirstBad)
	}
}

// live2 is some more of the same, with plans of other names.
func (w *world) live2() {
	w.Helper()
	for i := range 5 {
		w.plan(1000 + i)
	}
}

// TestWithheld: who leaves a part out is found out, whether its digest is the one
// or not: no mask and no erasure accounts for it.
func TestWithheld(t *testing.T) {
	w := newWorld(t)
	w.live(3)
	bundle := w.export(w.Journal, audit.Selection{})
	for _, c := range []struct{ digest, reason string }{
		{"", "no erasure in the log took them away"}, {strings.Repeat("ab", 32), "not the record that the log has"},
	} {
		var lines [][]byte
		position := int64(-1)
		for line := range bytes.Lines(bundle) {
			var l struct {
				Record *audit.Entry `json:"record"`
			}
			w.Must(json.Unmarshal(line, &l))
			if e := l.Record; e != nil && position < 0 && e.Kind == storage.KindIntent && strings.Contains(string(*e.Parts["envelope"].Text), "exec_python") {
				position = e.Position
				digest := c.digest
				if digest == "" {
					digest = partDigest(e.Parts["envelope"])
				}
				e.Parts["envelope"] = audit.Part{Digest: digest}
				line = encode(t, map[string]any{"record": e})
			}
			lines = append(lines, line)
		}
		r := w.verify(resum(t, lines), audit.Options{Trust: w.trust(), Replay: true})
		if r.OK || r.FirstBad.Position != position || !strings.Contains(r.FirstBad.Reason, c.reason) {
			t.Errorf("record %d: %+v %v", position, r, r.FirstBad)
		}
	}
}

// TestMaskedExport: for auditors without access, the arguments of a masked intent are
// withheld, and of no other; what later records depend on is shown.
func TestMaskedExport(t *testing.T) {
	w := newWorld(t)
	w.live(3)
	mask := func(at int64) slice {
		return w.rewritten(at, func(r *storage.Record) {
			var d intents.Decision
			w.Must(json.Unmarshal(r.Parts[storage.PartDecision], &d))
			d.Obligations = []intents.Obligation{{Name: "mask", Value: []string{"/script"}}}
			raw, err := json.Marshal(d)
			w.Must(err)
			r.Parts[storage.PartDecision] = raw
		})
	}
	at := map[string]int64{}
	for _, r := range w.Records() {
		for _, typ := range []string{"exec_python", "plan.open"} {
			if r.Kind == storage.KindIntent && bytes.Contains(r.Parts[storage.PartEnvelope], []byte(`\"type\":\"`+typ+`\"`)) {
				at[typ] = r.Position
			}
		}
	}
	for _, c := range []struct {
		typ    string
		masked bool
		want   int64
	}{{"exec_python", true, 1}, {"exec_python", false, 0}, {"plan.open", true, 0}} {
		bundle := w.export(mask(at[c.typ]), audit.Selection{Masked: c.masked})
		r := w.verify(bundle, audit.Options{Trust: w.trust()})
		if !r.OK || r.Withheld != c.want || r.Records != w.Journal.Next() {
			t.Errorf("%s, masked %v: %+v %v", c.typ, c.masked, r, r.FirstBad)
		}
		shown := bytes.Contains(bundle, []byte("print(2)"))
		if shown != (c.want == 0) {
			t.Errorf("%s, masked %v: the script is shown: %v", c.typ, c.masked, shown)
		}
	}
}

// TestProve: receipt, inclusion and keys of one intent in one document.
func TestProve(t *testing.T) {
	w := newWorld(t)
	w.live(3)
	a := w.Want(w.Do(routertest.Intent{By: w.Planner, Type: "skill.find", Args: catalog.SkillFind{Query: "one"}}), intents.OK)
	s := w.source(w.Journal)
	p, err := audit.Prove(t.Context(), s, a.IntentID)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Check(*w.trust()); err != nil || p.Receipt != a.Receipt || len(p.Inclusion) != 2 {
		t.Fatalf("%v %+v", err, p)
	}
	other := newWorld(t)
	if p.Check(*other.trust()) == nil {
		t.Error("the proof holds under another root key")
	}
	p.Inclusion[0].Leaf = strings.Replace(p.Inclusion[0].Leaf, `"kind":"intent"`, `"kind":"other"`, 1)
	if p.Check(*w.trust()) == nil {
		t.Error("another leaf is proved")
	}
	if _, err := audit.Prove(t.Context(), s, "sha256:"+strings.Repeat("0", 64)); !errors.Is(err, audit.ErrNotFound) {
		t.Errorf("an unknown intent: %v", err)
	}
}

// TestHeldKeysAreInEveryBundle: keys that people had to approve came into force with their release: a tenant's
// bundle has them, and the decisions about them.
func TestHeldKeysAreInEveryBundle(t *testing.T) {
	w := newWorld(t)
	hold := w.with("ext/keys.rego", func(string) string {
		return `package writ.ext.keys

# METADATA
# title: Keys
# description: Olga looks at keys.
# custom:
#   id: ext.keys
hold contains {"id": "ext.keys", "reason": "Olga looks at keys.", "approvers": ["olga"]} if input.intent.type == "key.put"
`
	})
	olga := w.AddOperator("system", "olga", "approver")
	w.blobs.put(hold.Source().Manifest())
	for _, content := range hold.Source() {
		w.blobs.put(content)
	}
	_, err := w.Policy.ReplaceTree(t.Context(), policies.Tree{Source: hold.Source()}, w.Router.SelfProof)
	w.Must(err)
	w.Must(w.Router.PolicyChanged(t.Context()))
	next := w.NewKey(intents.RoleManager)
	held := w.Want(w.Keys(func(s *intents.KeySet) { s.Keys = append(s.Keys, next.VerificationKey().ToJWK()) }), intents.ApprovalRequired)
	w.Want(w.Do(routertest.Intent{By: olga, Tenant: "system", User: "olga", Type: "hitl.approve", Args: catalog.Approve{IntentID: held.IntentID, Decision: catalog.DecisionApprove}}), intents.OK)
	w.Manager = next
	mine := w.OK(routertest.Intent{By: w.Manager, Type: "soul.get", Args: catalog.SoulGet{}})
	for name, sel := range map[string]audit.Selection{"all": {}, "tenant": {Tenant: "default"}, "complete": {Tenant: "default", Complete: true}} {
		if r := w.verify(w.export(w.Journal, sel), audit.Options{Trust: w.trust(), Replay: true}); !r.OK || r.KeySet != 4 {
			t.Errorf("%s: key set %d, %v", name, r.KeySet, r.FirstBad)
		}
	}
	p, err := audit.Prove(t.Context(), w.source(w.Journal), mine.IntentID)
	w.Must(err)
	if err := p.Check(*w.trust()); err != nil || len(p.KeySets) != 4 {
		t.Errorf("%d key sets, %v", len(p.KeySets), err)
	}
}
