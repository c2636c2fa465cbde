package recorder_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/storage"
)

// gapped refuses one entry of the search index and says when another is written.
type gapped struct {
	storage.Documents
	refused, awaited string
	written          chan struct{}
}

func (g *gapped) Put(ctx context.Context, tenant, index string, doc storage.Document) error {
	if index == storage.IndexOrders && doc.ID == g.refused {
		return errDown
	}
	err := g.Documents.Put(ctx, tenant, index, doc)
	if index == storage.IndexOrders && doc.ID == g.awaited {
		close(g.written)
	}
	return err
}

// Entries of a batch are written in no order: one that a crash left out is
// written by the next start, though a later one is there.
func TestCrashWithinABatch(t *testing.T) {
	w := worked(t, 30)
	want := documents(t)
	f := follow(t, w, want)
	f.caughtUp()
	f.stop()
	g := &gapped{Documents: documents(t), written: make(chan struct{})}
	var first, last int64 = 512, 256 // of the second batch
	for _, doc := range dump(t, want, "default")["default/agent_orders"] {
		if p := doc.Position; p >= 256 && p < first {
			first, g.refused = p, doc.ID
		}
		if p := doc.Position; p < 512 && p > last {
			last, g.awaited = p, doc.ID
		}
	}
	if g.refused == "" || g.awaited == "" || g.refused == g.awaited {
		t.Fatal("no second batch")
	}
	f = follow(t, w, g)
	<-g.written
	f.stop()
	f = follow(t, w, g.Documents)
	f.caughtUp()
	f.stop()
	if d := cmp.Diff(dump(t, want, "default", "system"), dump(t, g.Documents, "default", "system")); d != "" {
		t.Error(d)
	}
}
