package storagetest_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"aob.dev/writ/storage"
	"aob.dev/writ/storage/storagetest"
)

func TestMemoryJournal(t *testing.T) {
	var mu sync.Mutex
	byDir := make(map[string]*storagetest.Journal)
	storagetest.TestJournal(t, func(_ testing.TB, dir string, observe storage.Observer) storagetest.Opened {
		mu.Lock()
		defer mu.Unlock()
		if before, ok := byDir[dir]; ok {
			byDir[dir] = before.Reopen(observe)
		} else {
			byDir[dir] = storagetest.NewJournal(observe)
		}
		return byDir[dir]
	})
}

func TestMemoryJournalFails(t *testing.T) {
	lost := errors.New("no answer")
	c := storage.Commit{ID: "mine", Entries: []storage.Entry{{
		Record: storage.NewRecord(storage.KindControl, time.Unix(0, 0), nil), Of: storage.Nobody, Holder: storage.Nobody,
	}}}
	for _, persist := range []bool{false, true} {
		j := storagetest.NewJournal(nil)
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
