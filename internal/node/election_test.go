package node

import (
	"bytes"
	"context"
	"net/http"
	"reflect"
	"testing"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/ledger"
)

// TestTwoRecorders: of two recorders one records, and the other goes on where it ends. Two
// at once write the same documents, and checkpoints of one log.
func TestTwoRecorders(t *testing.T) {
	c := newCell(t, "a", "b")
	router := c.config("a", "router")
	c.begin(router)
	first, end, err := Start(context.WithoutCancel(t.Context()), c.config("a", "recorder"))
	must(t, err)
	n := c.process(router)
	second := c.process(c.config("b", "recorder"))
	put := func(tenant string) {
		t.Helper()
		var a intents.Answer
		if c.call("", http.MethodPost, n.url()+"/v1/intents", c.sign("operator", intents.RoleOperator, "admin.put", catalog.AdminPut{New: &catalog.Tenant{ID: tenant}}), &a); a.Code != intents.OK {
			t.Fatalf("%+v", a)
		}
	}
	reach := func(x *Node) {
		t.Helper()
		must(t, x.recorder.Reach(c.within(), n.journal.Next()))
		must(t, x.ledger.Reach(c.within(), n.journal.Next()))
	}
	put("one")
	reach(first)
	if second.recording.Load() {
		t.Error("both record")
	}
	if status := c.call("", http.MethodGet, second.url()+"/ledger/checkpoint", nil, nil); status != http.StatusServiceUnavailable {
		t.Errorf("who does not record serves the ledger: HTTP %d", status)
	}
	before, err := first.ledger.Sync(t.Context())
	must(t, err)
	must(t, end()) // it gives the lease back
	put("two")
	must(t, clock.Every(c.within(), 10*time.Millisecond, second.recording.Load))
	reach(second)
	after, err := second.ledger.Sync(t.Context())
	must(t, err)
	hashes, err := second.ledger.Prover(after.Size).Consistency(t.Context(), before.Size)
	must(t, err)
	must(t, ledger.VerifyConsistency(before, after, hashes))

	documents := c.intents(second)
	third, err := Open(t.Context(), c.config("a", "recorder")) // which believes that it has the lease, too
	must(t, err)
	defer func() { must(t, third.Close()) }()
	g := newGroup(t.Context())
	must(t, third.openRecording(t.Context(), g, third.conns.of("recorder")))
	reach(third)
	put("three")
	reach(second)
	reach(third)
	must(t, g.stop())
	one, err := second.ledger.Sync(t.Context())
	must(t, err)
	two, err := third.ledger.Sync(t.Context())
	must(t, err)
	must(t, third.ledger.Close())
	if one.Size != two.Size || !bytes.Equal(one.Root, two.Root) {
		t.Errorf("checkpoints %+v and %+v", one, two)
	}
	now := c.intents(second)
	if len(now) != len(documents)+1 {
		t.Errorf("%d documents, and then %d", len(documents), len(now))
	}
	for id, doc := range documents {
		if !reflect.DeepEqual(now[id], doc) {
			t.Errorf("%s is %+v, and was %+v", id, now[id], doc)
		}
	}
}

// intents of tenant system in the documents.
func (c *testCell) intents(n *Node) map[string]storage.Document {
	c.Helper()
	page, err := n.documents.Search(c.Context(), storage.SystemTenant, storage.IndexIntents, storage.Query{Limit: 100})
	must(c.T, err)
	out := map[string]storage.Document{}
	for _, d := range page.Documents {
		out[d.ID] = d
	}
	return out
}
