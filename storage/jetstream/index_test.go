package jetstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/internal/testing/natstest"
	"aob.dev/writ/internal/testing/storagetest"
	"aob.dev/writ/storage"
)

// TestIndexes: an index that stopped anywhere, was written, read and brought up to date is the
// index of a journal that has read all messages, and a journal that is opened with it has
// the same state and records.
func TestIndexes(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), natstest.Patience)
	defer cancel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	c := natstest.Start(t, 1)
	account := c.Account()
	if err := Create(ctx, c.Connect(t, account), 1); err != nil {
		t.Fatal(err)
	}
	opened := func(name string, from *StreamIndex, erased func()) *Journal {
		j, err := Open(ctx, c.Connect(t, account), Options{Instance: name, From: from, OnErased: erased})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = j.Close() })
		return j
	}
	var live *Journal
	var keys []string
	var positions []int64 // an index retains the content of an outcome, so that no outcome is erased
	var middle []byte     // of an index that was written before the erasures
	const groups = 3 * markEvery
	for i := range groups {
		if i%100 == 0 { // another one leads
			live = opened(fmt.Sprint("writer ", i), nil, nil)
			if err := live.Lead(ctx, always); err != nil {
				t.Fatal(err)
			}
		}
		j := live
		name := fmt.Sprint("key ", i)
		r, err := j.Commit(ctx, storagetest.CrashCommit(name, 1+random.IntN(3)))
		if err != nil || r.Verdict != storage.Won {
			t.Fatalf("%+v, %v", r, err)
		}
		keys, positions = append(keys, name), append(positions, r.Positions...)
		if random.IntN(2) == 0 {
			out := storage.NewRecord(storage.KindOutcome, time.UnixMilli(0), map[string]json.RawMessage{"outcome": json.RawMessage(`{}`)})
			if _, err := j.Finish(ctx, r.Positions[0], 1, out, nil); err != nil {
				t.Fatal(err)
			}
		}
		switch {
		case i == groups/2:
			middle = written(t, followed(t, j, NewStreamIndex(), random.Int64N(j.Next())))
		case i%97 == 96:
			position := positions[random.IntN(len(positions))]
			for range 2 { // the second time there is nothing to take away
				if err := j.Erase(ctx, position); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	want := written(t, live.index)
	for range 5 {
		part := followed(t, live, NewStreamIndex(), random.Int64N(live.Next()+1))
		if !bytes.Equal(written(t, followed(t, live, read(t, written(t, part)), math.MaxInt64)), want) {
			t.Errorf("a fold that had stopped before record %d differs", part.Next())
		}
	}
	old, told := read(t, middle), false // the index does not know which keys were erased since
	next := old.Next()
	late := opened("late", old, func() { told = true })
	if !told {
		t.Error("nobody was told of erasures behind the fold")
	}
	if !bytes.Equal(written(t, late.index), want) {
		t.Errorf("a journal that was opened with a fold of %d records differs", next)
	}
	for _, name := range keys {
		a, _, errA := live.Lookup(ctx, storagetest.CrashKey(name))
		b, _, errB := late.Lookup(ctx, storagetest.CrashKey(name))
		if errA != nil || errB != nil || a != b {
			t.Errorf("%s: %+v, %+v, %v, %v", name, a, b, errA, errB)
		}
	}
	look, err := NewLook(ctx, c.Connect(t, account), late.index)
	if err != nil {
		t.Fatal(err)
	}
	late.cache, live.cache = cache{}, cache{} // read what is stored
	for rec, err := range live.Scan(ctx, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if random.IntN(8) > 0 {
			continue
		}
		for _, from := range []interface {
			Get(ctx context.Context, position int64) (storage.Record, error)
		}{late, look} {
			if got, err := from.Get(ctx, rec.Position); err != nil || !cmp.Equal(got, rec) {
				t.Fatalf("record %d: %v\n%s", rec.Position, err, cmp.Diff(rec, got))
			}
		}
	}
	if _, err := look.Get(ctx, live.Next()); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("a record that is not there: %v", err)
	}
}

func followed(t *testing.T, j *Journal, f *StreamIndex, end int64) *StreamIndex {
	t.Helper()
	if err := j.Follow(t.Context(), f, end, func(storage.Entry) {}); err != nil {
		t.Fatal(err)
	}
	return f
}

func written(t *testing.T, f *StreamIndex) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := f.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func read(t *testing.T, raw []byte) *StreamIndex {
	t.Helper()
	r := bytes.NewReader(append(slices.Clone(raw), "behind it\n"...))
	f, err := ReadStreamIndex(r)
	if err != nil {
		t.Fatal(err)
	}
	if rest := r.Len(); rest != len("behind it\n") {
		t.Fatalf("%d bytes are left", rest)
	}
	return f
}
