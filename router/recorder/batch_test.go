package recorder_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/storage"
)

// gapped writes all of a projection but one entry of the search index, and then fails: a store
// without transactions.
type gapped struct {
	storage.Documents
	refused string
	written chan struct{}
	once    sync.Once
}

func (g *gapped) Project(ctx context.Context, tenant, index string, p storage.Projection) error {
	missing := func(doc storage.Document) bool { return index == storage.IndexIntents && doc.ID == g.refused }
	most := storage.Projection{
		Put:     slices.DeleteFunc(slices.Clone(p.Put), missing),
		Created: slices.DeleteFunc(slices.Clone(p.Created), missing),
	}
	if err := g.Documents.Project(ctx, tenant, index, most); err != nil {
		return err
	}
	if len(most.Put)+len(most.Created) < len(p.Put)+len(p.Created) {
		g.once.Do(func() { close(g.written) })
		return errDown
	}
	return nil
}

// A store may write a batch in any order: an entry that a crash left out is written by the next
// start, though a later one exists.
func TestCrashWithinABatch(t *testing.T) {
	w := worked(t, 30)
	want := documents(t)
	f := follow(t, w, want)
	f.caughtUp()
	f.stop()
	g := &gapped{Documents: documents(t), written: make(chan struct{})}
	first := int64(512) // of the second batch
	for _, doc := range dump(t, want, "default")["default/agent_intents"] {
		if p := doc.Position; p >= 256 && p < first {
			first, g.refused = p, doc.ID
		}
	}
	if g.refused == "" {
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
