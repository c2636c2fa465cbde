package storagetest

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"strings"
	"time"

	"aob.dev/writ/storage"
)

// anyAge is an age that everything has.
const anyAge = -time.Hour

// named is a journal that names given blobs.
type named struct {
	storage.Records
	texts []string
}

// Next implements storage.Records.
func (n named) Next() int64 { return int64(len(n.texts)) }

// Scan implements storage.Records.
func (n named) Scan(_ context.Context, from int64) iter.Seq2[storage.Record, error] {
	return func(yield func(storage.Record, error) bool) {
		for i, text := range n.texts {
			part, err := json.Marshal(map[string]string{"x": text})
			if int64(i) < from {
				continue
			}
			if !yield(storage.Record{Position: int64(i), Parts: map[string]json.RawMessage{"intent": part}}, err) {
				return
			}
		}
	}
}

func (b *blobs) collector() storage.Collector {
	b.Helper()
	c, ok := b.Blobs.(storage.Collector)
	if !ok {
		b.Fatalf("%T is no storage.Collector", b.Blobs)
	}
	return c
}

func (b *blobs) keep(tenant, text string) (ref string) {
	b.Helper()
	ref, _, err := b.Keep(b.Context(), tenant, strings.NewReader(text))
	if err != nil {
		b.Fatal(err)
	}
	return ref
}

func (b *blobs) kept(tenant, ref string) bool {
	b.Helper()
	r, _, err := b.Fetch(b.Context(), tenant, ref)
	if errors.Is(err, storage.ErrNotFound) {
		return false
	}
	if err != nil {
		b.Fatal(err)
	}
	if err := r.Close(); err != nil {
		b.Fatal(err)
	}
	return true
}

// An old blob that no record names is removed; a file of a step is not.
func testCollect(b *blobs) {
	var log named
	var gone []string
	for _, text := range []string{"named", "plain", "empty", "nobody's"} {
		ref := b.keep("acme", text)
		switch text {
		case "named":
			log.texts = append(log.texts, ref)
		case "plain":
			log.texts = append(log.texts, "", strings.TrimPrefix(ref, "cas://"))
		default:
			gone = append(gone, ref)
		}
	}
	f := b.put(scope, "empty")
	if n, err := storage.Collect(b.Context(), b.collector(), log, []string{"acme"}, time.Hour); n != 0 || err != nil {
		b.Fatalf("of an hour: %d, %v", n, err)
	}
	if n, err := storage.Collect(b.Context(), b.collector(), log, []string{"acme", "nobody"}, anyAge); n != len(gone) || err != nil {
		b.Fatalf("of any age: %d, %v", n, err)
	}
	for _, ref := range gone {
		if b.kept("acme", ref) {
			b.Errorf("%s is still there", ref)
		}
		if again, err := b.collector().Drop(b.Context(), "acme", ref, anyAge); again || err != nil {
			b.Errorf("dropped twice: %v, %v", again, err)
		}
	}
	for _, name := range log.texts {
		if name != "" && !b.kept("acme", "cas://"+strings.TrimPrefix(name, "cas://")) {
			b.Errorf("%s is gone", name)
		}
	}
	b.opens(scope, f.ID, "empty")
	if ref := b.keep("acme", "empty"); !b.kept("acme", ref) {
		b.Error("kept again, and not there")
	}
}

// A tenant's blobs are its own, the same bytes too.
func testCollectOwn(b *blobs) {
	ref := b.keep("acme", "x")
	if other := b.keep("other", "x"); other != ref {
		b.Fatalf("%s, %s", ref, other)
	}
	if n, err := storage.Collect(b.Context(), b.collector(), named{}, []string{"acme"}, anyAge); n != 1 || err != nil {
		b.Fatalf("%d, %v", n, err)
	}
	if b.kept("acme", ref) || !b.kept("other", ref) {
		b.Fatal("another tenant's blob was taken")
	}
	refs, err := b.collector().ListOld(b.Context(), "other", anyAge)
	if err != nil || len(refs) != 1 || refs[0] != ref {
		b.Fatalf("%q, %v", refs, err)
	}
	if _, err := b.collector().ListOld(b.Context(), "", anyAge); err == nil {
		b.Fatal("nobody's blobs were listed")
	}
}

// A blob written again after it was listed is young, whatever was listed.
func testDropSparesYoung(b *blobs) {
	ref := b.keep("acme", "x")
	if gone, err := b.collector().Drop(b.Context(), "acme", ref, time.Hour); gone || err != nil {
		b.Fatalf("%v, %v", gone, err)
	}
	if refs, err := b.collector().ListOld(b.Context(), "acme", time.Hour); len(refs) != 0 || err != nil {
		b.Fatalf("aged: %q, %v", refs, err)
	}
	if gone, err := b.collector().Drop(b.Context(), "acme", "cas://sha256:../x", anyAge); gone || err != nil {
		b.Fatalf("%v, %v", gone, err)
	}
	if !b.kept("acme", ref) {
		b.Fatal("it is gone")
	}
}

// A blob that is being written is not there, and one whose writer gives up never
// will be.
func testHalfIsNothing(b *blobs) {
	text := strings.Repeat("0123456789abcdef", 40_000) // several chunks, where there are any
	ref := "cas://" + digestOf(text)
	for _, whole := range []bool{false, true} {
		r, w := io.Pipe()
		done := make(chan error, 1)
		go func() {
			_, _, err := b.Keep(b.Context(), "acme", r)
			_ = r.CloseWithError(errReader) // nobody may wait for a reader that is gone
			done <- err
		}()
		if _, err := io.WriteString(w, text[:len(text)-1]); err != nil {
			b.Fatal(err)
		}
		if b.kept("acme", ref) {
			b.Fatal("half a blob is there")
		}
		b.sweeps(0, 0)
		if !whole {
			_ = w.CloseWithError(errReader)
			if err := <-done; !errors.Is(err, errReader) {
				b.Fatal(err)
			}
			continue
		}
		if _, err := io.WriteString(w, text[len(text)-1:]); err != nil {
			b.Fatal(err)
		}
		_ = w.Close()
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	}
	b.fetches(ref, text)
	b.sweeps(0, 0)
}

// Sizes around those in which stores cut.
func testManyChunks(b *blobs) {
	for _, size := range []int{1, 128<<10 - 1, 128 << 10, 128<<10 + 1, 3 << 20} {
		text := strings.Repeat("x", size-1) + "y"
		b.fetches(b.keep("acme", text), text)
	}
}
