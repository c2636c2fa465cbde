package upkeep

import (
	"context"
	"encoding/json"
	"iter"
	"testing"

	"aob.dev/writ/audit"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/keydir"
	"aob.dev/writ/storage"
)

// countedRecords counts the records that scans yield.
type countedRecords struct {
	storage.Records
	scanned map[int64]int
}

func (c countedRecords) Scan(ctx context.Context, from int64) iter.Seq2[storage.Record, error] {
	return func(yield func(storage.Record, error) bool) {
		for rec, err := range c.Records.Scan(ctx, from) {
			c.scanned[rec.Position]++
			if !yield(rec, err) {
				return
			}
		}
	}
}

// TestFsckReadsOnce: the check of the log and the projection that its documents are compared with
// come of one scan of the journal, also of more records than one reader may be ahead.
func TestFsckReadsOnce(t *testing.T) {
	dir := t.TempDir()
	t.Run("used", func(t *testing.T) {
		n := open(t, config(dir))
		run(t, n)
		for i := range sharedAhead {
			must(t, submit(t.Context(), n, config(dir), "admin.put", catalog.AdminPut{Tenant: "default", Data: &catalog.Data{Key: "x.note", Value: json.RawMessage(marshalled(t, i))}}))
		}
	})
	a, err := datadir.OpenArchive(t.Context(), dir)
	must(t, err)
	t.Cleanup(func() { must(t, a.Close()) })
	held, err := keydir.LoadAll(datadir.Keys(dir))
	must(t, err)
	var keys []intents.Key
	for _, s := range held.ByRole(intents.RoleLedger) {
		keys = append(keys, s.VerificationKey())
	}
	check := func(records storage.Records) (audit.Health, map[int64]int) {
		t.Helper()
		counted := countedRecords{records, map[int64]int{}}
		source := a.Source
		source.Records = counted
		h, err := checkAndCompare(t.Context(), dir, source, keys, nil)
		must(t, err)
		return h, counted.scanned
	}
	h, scanned := check(a.Journal)
	if !h.OK || !h.Compared || h.Records <= sharedAhead || int64(len(scanned)) != h.Records || h.Projections < h.Records/2 {
		t.Fatalf("%+v %v, %d records scanned", h, h.FirstBad, len(scanned))
	}
	for position, times := range scanned {
		if times != 1 {
			t.Errorf("record %d is read %d times", position, times)
		}
	}
	if h, _ := check(shortened{a.Journal}); h.OK || h.FirstBad == nil || h.Compared {
		t.Errorf("a journal that ends early: %+v", h)
	}
}

// shortened is a journal whose scans lack its end.
type shortened struct{ storage.Records }

func (s shortened) Scan(ctx context.Context, from int64) iter.Seq2[storage.Record, error] {
	return func(yield func(storage.Record, error) bool) {
		for rec, err := range s.Records.Scan(ctx, from) {
			if rec.Position == s.Next()/2 || !yield(rec, err) {
				return
			}
		}
	}
}

func marshalled(t *testing.T, v any) []byte {
	t.Helper()
	raw, err := json.Marshal(v)
	must(t, err)
	return raw
}
