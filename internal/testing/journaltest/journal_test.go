package journaltest

import (
	"context"
	"errors"
	"testing"
	"time"

	"aob.dev/writ/storage"
)

func TestMemoryJournalFails(t *testing.T) {
	lost := errors.New("no answer")
	c := storage.Commit{ID: "mine", Entries: []storage.Entry{{
		Record: storage.NewRecord(storage.KindControl, time.Unix(0, 0), nil), Target: storage.NoPosition, Holder: storage.NoPosition,
	}}}
	for _, persist := range []bool{false, true} {
		j := NewJournal(nil)
		j.FailNext(lost, persist)
		if r, err := j.Commit(context.Background(), c); !errors.Is(err, lost) || r.Verdict != storage.Unknown {
			t.Fatalf("commit = %+v, %v", r, err)
		}
		if kept := j.Next() == 1; kept != persist {
			t.Fatalf("persist %v: kept %v", persist, kept)
		}
		if r, err := j.Commit(context.Background(), c); err != nil || r.Verdict != storage.Won || r.Positions[0] != 0 {
			t.Fatalf("asked again = %+v, %v", r, err)
		}
	}
}
