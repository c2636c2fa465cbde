package node

import (
	"bytes"
	"encoding/json"
	"testing"

	"aob.dev/writ/audit"
	"aob.dev/writ/intents/catalog"
)

// TestPoliciesOfThen: every policy that has decided is kept before it is in
// force, so an export replays across a reload and a restart under another tree.
func TestPoliciesOfThen(t *testing.T) {
	dir, module := tree(t)
	cfg, log := config(t.TempDir()), newMessages()
	cfg.Policy.Dir, cfg.Log = dir, log.logger()
	put := func(t *testing.T, n *Node, value string) {
		t.Helper()
		if err := n.operator(t.Context(), "admin.put", catalog.AdminPut{Tenant: "default", Data: &catalog.Data{Key: "x.note", Value: json.RawMessage(value)}}); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("before", func(t *testing.T) {
		n := open(t, cfg)
		run(t, n)
		put(t, n, `1`)
		rewrite(t, module, func(s string) string { return s + "\n# a remark\n" })
		log.wait(t, saysInForce, 1)
		put(t, n, `2`)
	})
	cfg.Policy.Dir = "" // the embedded tree
	n := open(t, cfg)
	run(t, n)
	put(t, n, `3`)

	a, err := n.Archive(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var bundle bytes.Buffer
	done, err := audit.Export(t.Context(), &bundle, a.Source, audit.Selection{})
	if err != nil || done.Pending != 0 {
		t.Fatalf("%+v %v", done, err)
	}
	trust := audit.NewTrust(a.Root)
	r, err := audit.Verify(t.Context(), &bundle, audit.Options{Trust: &trust, Replay: true})
	if err != nil || !r.OK || !r.Anchored || !r.Complete || r.Replayed != r.Intents || r.Intents < 4 {
		t.Fatalf("%+v %v %v", r, r.FirstBad, err)
	}
}
