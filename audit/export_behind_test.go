package audit_test

import (
	"bytes"
	"context"
	"iter"
	"testing"

	"aob.dev/writ/audit"
	"aob.dev/writ/storage"
)

// behind is the records of a journal as they were when it was opened.
type behind struct {
	storage.Records
	next int64
}

func (b behind) Next() int64 { return b.next }

func (b behind) Scan(ctx context.Context, from int64) iter.Seq2[storage.Record, error] {
	return func(yield func(storage.Record, error) bool) {
		for rec, err := range b.Records.Scan(ctx, from) {
			if err == nil && rec.Position >= b.next || !yield(rec, err) {
				return
			}
		}
	}
}

// TestExportOfGrowingLog: a checkpoint that was published after the records were opened proves more than
// they have; the bundle ends where they do.
func TestExportOfGrowingLog(t *testing.T) {
	w := newWorld(t)
	w.user("ben", "user")
	opened := behind{w.Journal, w.Journal.Next()}
	w.user("cleo", "user")
	src := w.source(w.Journal)
	src.Records = opened
	var out bytes.Buffer
	_, err := audit.Export(t.Context(), &out, src, audit.Selection{})
	w.Must(err)
	r := w.verify(out.Bytes(), audit.Options{Trust: w.trust(), Replay: true})
	if !r.OK || !r.Complete || r.Size != opened.next {
		t.Errorf("%v, %+v", r.FirstBad, r)
	}
}
