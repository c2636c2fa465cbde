package audit_test

import (
	"encoding/base64"
	"testing"

	"aob.dev/writ/audit"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/policies"
	"aob.dev/writ/storage"
)

// put puts a changed tree in force, and stores it for replays.
func (w *world) put(tree policies.Tree) {
	w.Helper()
	raw, err := policies.BuildBundle(tree)
	w.Must(err)
	source := tree.Source.Deciding()
	for _, content := range source {
		w.blobs.put(content)
	}
	w.blobs.put(source.Manifest())
	w.Want(w.Admin("policy.push", catalog.PolicyPush{Revision: tree.Revision, Digest: tree.Source.Digest(), Bundle: base64.StdEncoding.EncodeToString(raw)}), intents.OK)
}

// TestForgedRevision: revisions of policies only rise, pushed or recorded by the router.
func TestForgedRevision(t *testing.T) {
	w := newWorld(t)
	counters := func() int64 { // a control record, which its router could have written otherwise
		stop := w.RunRouter()
		w.Want(w.Send([]byte("{")), intents.SchemaInvalid)
		stop()
		return w.Journal.Next() - 1
	}
	before, first := counters(), w.Policy.Engine().Digest()
	w.put(policies.Tree{Source: w.with("one.rego", func(string) string { return "package one\n" }).Source(), Revision: 5})
	w.put(policies.Tree{Source: w.with("two.rego", func(string) string { return "package two\n" }).Source(), Revision: 7})
	if r := w.verify(w.export(w.Journal, audit.Selection{}), audit.Options{Trust: w.trust(), Replay: true}); !r.OK {
		t.Fatal(r.FirstBad)
	}
	after := counters()
	last := w.Policy.Engine().Digest()
	says := func(at int64, digest string, revision int) slice {
		return w.part(at, storage.PartControl, func(m map[string]any) {
			m["policy_digest"], m["policy_revision"] = digest, revision
		})
	}
	w.badAt(says(before, first, 6), before+1, "pushes policy revision 5 after revision 6", audit.Options{})
	w.badAt(says(after, last, 6), after, "revision 6 in force after revision 7", audit.Options{})
	if r := w.verify(w.export(says(after, last, 8), audit.Selection{}), audit.Options{Trust: w.trust()}); !r.OK {
		t.Error(r.FirstBad) // a place gave it
	}
}

// TestReplayTTLMax: what ttl_max refuses, the router refuses: a replay decides the same,
// under that policy and in a backtest.
func TestReplayTTLMax(t *testing.T) {
	w := newWorld(t)
	short := w.with("authz/short.rego", func(string) string {
		return `package writ.authz

# METADATA
# description: Souls are read at once.
obligations contains {"name": "ttl_max", "value": 30} if input.intent.type == "soul.get"
`
	})
	soul := routertest.Intent{By: w.Manager, Type: "soul.get", Args: catalog.SoulGet{}, TTL: 60}
	w.OK(soul)
	w.put(policies.Tree{Source: short.Source(), Revision: 1})
	w.Want(w.Do(soul), intents.PolicyDenied)
	soul.TTL = 30
	w.OK(soul)
	r := w.verify(w.export(w.Journal, audit.Selection{}), audit.Options{Trust: w.trust(), Replay: true})
	if !r.OK || r.Unreplayable != 0 {
		t.Errorf("%v, %d unreplayable", r.FirstBad, r.Unreplayable)
	}
	b, err := audit.BacktestRecords(t.Context(), w.source(w.Journal), audit.Trial{New: short})
	w.Must(err)
	if len(b.Flips) != 1 || b.Flips[0].Before != intents.Allow || b.Flips[0].After != intents.Deny {
		t.Errorf("%+v", b.Flips)
	}
}
