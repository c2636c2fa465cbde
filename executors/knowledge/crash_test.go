package knowledge_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"aob.dev/writ/executors/knowledge"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// cut is a store that does not answer any more after so many writes, as if the process had
// ended there.
type cut struct {
	storage.Documents
	left int
}

var errCut = errors.New("cut")

func (c *cut) may() error {
	if c.left--; c.left < 0 {
		return errCut
	}
	return nil
}

func (c *cut) Swap(ctx context.Context, tenant, index string, expected int64, doc storage.Document) error {
	if err := c.may(); err != nil {
		return err
	}
	return c.Documents.Swap(ctx, tenant, index, expected, doc)
}

func (c *cut) Project(ctx context.Context, tenant, index string, p storage.Projection) error {
	if err := c.may(); err != nil {
		return err
	}
	return c.Documents.Project(ctx, tenant, index, p)
}

func (c *cut) Purge(ctx context.Context, tenant, index string, q storage.Query) (int, error) {
	if err := c.may(); err != nil {
		return 0, err
	}
	return c.Documents.Purge(ctx, tenant, index, q)
}

// TestCrash: whatever write of an intent is the last, the old document or the new one is found
// whole, or for a moment both, and nothing else. The intent that is sent again brings it to its
// end; if none comes, the upkeep removes what is left.
func TestCrash(t *testing.T) {
	text := strings.Repeat("A harbour of sorts opens at some hour of the day. ", 5000) // several batches of chunks
	ended := false
	for writes := 0; !ended; writes++ {
		if writes > 50 {
			t.Fatal("it never ends")
		}
		docs := embedded(t)
		b := on(t, docs, nil)
		old := b.index(t, "acme", "ana", plain("old", "The harbour opens at six."))
		whole := func(when string, want ...string) {
			t.Helper()
			got := b.listed(t, "ana")
			if !slices.Contains(want, got) {
				t.Errorf("%d writes, %s: there is %q", writes, when, got)
			}
			for _, h := range b.search(t, catalog.KBSearch{Q: "harbour", K: new(50)}).Hits {
				if !strings.Contains(got, h.Title) {
					t.Errorf("%d writes, %s: %s is found", writes, when, h.Title)
				}
			}
		}
		ref, _, err := b.blobs.Keep(t.Context(), "acme", strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		again := as("acme", "ana", "kb.index", catalog.KBIndex{Title: "new", From: ref, MediaType: "text/plain", Supersedes: old.DocumentID})
		again.Ticket.Inputs = []intents.Input{{Pointer: "/data", Ref: ref}}
		again = b.Fill(again)
		broken := on(t, &cut{docs, writes}, func(c *knowledge.Config) { c.Blobs = b.blobs })
		broken.Router, broken.Task = b.Router, b.Task
		ended = broken.Send(t, broken.Sign(t, again)).Status == intents.Done
		whole("after the crash", "old", "new old", "new")
		if writes%2 == 0 { // it is sent again
			b.Must(t, again, nil)
			whole("sent again", "new")
			if n := chunksIn(t, docs); n <= 64 {
				t.Errorf("%d writes: %d chunks", writes, n)
			}
			continue
		}
		b.now = b.now.Add(2 * time.Hour)
		u := knowledge.Upkeep{Documents: docs, Now: b.clock}
		if err := u.Sweep(t.Context(), "acme"); err != nil {
			t.Fatal(err)
		}
		whole("swept", "old", "new old", "new")
		if n := chunksIn(t, docs); (n > 1) != strings.Contains(b.listed(t, "ana"), "new") {
			t.Errorf("%d writes: %d chunks are left", writes, n)
		}
		b.now = b.now.Add(30 * 24 * time.Hour)
		if err := u.Sweep(t.Context(), "acme"); err != nil {
			t.Fatal(err)
		}
		page, err := docs.Search(t.Context(), "acme", storage.IndexChunks, storage.Query{Terms: map[string][]string{"state": {"writing", "removed"}}})
		if err != nil || len(page.Documents) > 0 {
			t.Errorf("%d writes: %d dead documents are remembered: %v", writes, len(page.Documents), err)
		}
	}
}

func chunksIn(tb testing.TB, docs storage.Documents) int {
	tb.Helper()
	found, err := docs.Aggregate(tb.Context(), "acme", storage.IndexChunks, storage.Query{Terms: map[string][]string{"kind": {"chunk"}}}, storage.Aggregation{})
	if err != nil {
		tb.Fatal(err)
	}
	n := 0
	for _, b := range found {
		n += int(b.Count)
	}
	return n
}

// TestLate: an intent from before a removal does not bring the document back.
func TestLate(t *testing.T) {
	b := on(t, embedded(t), nil)
	add := b.Fill(as("acme", "ana", "kb.index", plain("notes", "A harbour.")))
	var added catalog.KBIndexResult
	b.Must(t, add, &added)
	b.Must(t, as("acme", "ana", "kb.remove", catalog.KBRemove{DocumentID: added.DocumentID}), nil)
	add.Ticket.Attempt = 2
	if r := b.Send(t, b.Sign(t, add)); r.Code != intents.StaleWrite || b.listed(t, "ana") != "" {
		t.Errorf("%+v", r)
	}
}
