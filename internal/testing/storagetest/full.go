package storagetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/storage"
)

// Full checks a driver when the disk is full: the write has not happened, the journal continues,
// and the same write retried when there is room happens once. full takes all room away, or gives it
// back; the journal is idle then.
func Full(t *testing.T, j Opened, full func(is bool)) {
	t.Helper()
	ctx := t.Context()
	var open []int64
	for i := range 3 {
		open = append(open, j.Next())
		if r, err := j.Commit(ctx, CrashCommit(fmt.Sprint("open ", i), 1)); err != nil || r.Verdict != storage.Won {
			t.Fatalf("commit = %+v, %v", r, err)
		}
	}
	before := j.Next()
	outcome := func(of int64) storage.Record {
		r := CrashRecord(storage.KindOutcome, fmt.Sprint("outcome ", of), 0, 1)
		r.Parts["long"] = json.RawMessage(fmt.Sprintf("%q", strings.Repeat("x", 100_000)))
		return r
	}
	late := CrashCommit("late", 1)
	large := outcome(storage.NoPosition)
	large.Kind = storage.KindIntent
	late.Entries[0].Record = Telling(large, late.Entries[0].Key, intents.Allow)

	full(true)
	for range 3 { // as the router tries again and again
		for _, of := range open {
			if _, err := j.Finish(ctx, of, 1, outcome(of), nil); !errors.Is(err, storage.ErrFull) {
				t.Fatalf("finish without room: %v", err)
			}
		}
		if r, err := j.Commit(ctx, late); !errors.Is(err, storage.ErrFull) || r.Verdict != storage.Unknown {
			t.Fatalf("commit without room = %+v, %v", r, err)
		}
	}
	if list, err := j.OpenIntents(ctx); err != nil || len(list) != len(open) || j.Next() != before {
		t.Fatalf("without room %+v are open, %v, and %d records are there, not %d", list, err, j.Next(), before)
	}
	full(false)

	for i, of := range open {
		if p, err := j.Finish(ctx, of, 1, outcome(of), nil); err != nil || p != before+int64(i) {
			t.Fatalf("finish with room again: %d, %v", p, err)
		}
		if _, err := j.Finish(ctx, of, 1, outcome(of), nil); !errors.Is(err, storage.ErrFinished) {
			t.Fatalf("a second finish: %v", err)
		}
	}
	r, err := j.Commit(ctx, late)
	if err != nil || r.Verdict != storage.Won {
		t.Fatalf("commit with room again = %+v, %v", r, err)
	}
	if _, err := j.Finish(ctx, r.Positions[0], 1, outcome(r.Positions[0]), nil); err != nil {
		t.Fatal(err)
	}
	if list, err := j.OpenIntents(ctx); err != nil || len(list) != 0 || j.Next() != before+int64(len(open))+2 {
		t.Fatalf("with room again %+v are open, %v, at record %d", list, err, j.Next())
	}
}
