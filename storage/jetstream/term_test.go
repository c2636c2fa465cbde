package jetstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"aob.dev/writ/storage"
)

// led is a journal that leads.
type led struct {
	*Journal
	fatal chan error
}

func lead(t *testing.T, url, instance string, may func() error) led {
	t.Helper()
	l := led{fatal: make(chan error, 1)}
	var err error
	if l.Journal, err = Open(t.Context(), dialed(t, url), Options{Instance: instance, OnFatal: func(err error) { l.fatal <- err }}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	if err := l.Lead(t.Context(), may); err != nil {
		t.Fatal(err)
	}
	return l
}

func always() error { return nil }

// commit writes one record.
func (l led) commit(t *testing.T, id string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	rec := storage.NewRecord(storage.KindControl, time.Now(), map[string]json.RawMessage{storage.PartControl: []byte(`{}`)})
	res, err := l.Commit(ctx, storage.Commit{ID: id, AsOf: 1 << 60, Entries: []storage.Entry{{Record: rec, Holder: storage.NoPosition, Target: storage.NoPosition}}})
	if err == nil && res.Verdict != storage.Won {
		err = fmt.Errorf("verdict %d", res.Verdict)
	}
	return err
}

func (l led) failed(t *testing.T) error {
	t.Helper()
	select {
	case err := <-l.fatal:
		return err
	case <-time.After(time.Minute):
		t.Fatal("it goes on")
		return nil
	}
}

func journaling(t *testing.T) (url string) {
	t.Helper()
	url = started(t, server.Options{JetStream: true, StoreDir: t.TempDir()}).ClientURL()
	if err := Create(t.Context(), dialed(t, url), 1); err != nil {
		t.Fatal(err)
	}
	return url
}

// TestTerms: a router that leads after another one has all of its records, and the other one writes
// nothing more. Nobody takes a term for a record.
func TestTerms(t *testing.T) {
	url := journaling(t)
	a := lead(t, url, "a", always)
	if err := a.commit(t, "1"); err != nil {
		t.Fatal(err)
	}
	b := lead(t, url, "b", always)
	if b.Next() != 1 {
		t.Errorf("b has %d records", b.Next())
	}
	if err := a.failed(t); !errors.Is(err, ErrSucceeded) {
		t.Errorf("a has failed: %v", err)
	}
	if err := a.commit(t, "2"); !errors.Is(err, ErrSucceeded) {
		t.Errorf("a writes: %v", err)
	}
	if err := b.commit(t, "3"); err != nil {
		t.Error(err)
	}
	c := lead(t, url, "c", always)
	if err := c.commit(t, "4"); err != nil {
		t.Error(err)
	}
	var positions []int64
	c.cache = cache{} // it reads the stream
	for rec, err := range c.Scan(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		positions = append(positions, rec.Position)
	}
	index := NewStreamIndex()
	if err := c.Follow(t.Context(), index, 1<<60, func(storage.Entry) {}); err != nil {
		t.Error(err)
	}
	if !slices.Equal(positions, []int64{0, 1, 2}) || index.Next() != 3 || index.Seq != 6 {
		t.Errorf("scanned %d, followed to %d, sequence %d", positions, index.Next(), index.Seq)
	}
	for position := range int64(3) {
		if rec, err := c.Get(t.Context(), position); err != nil || rec.Position != position {
			t.Errorf("%d: %+v, %v", position, rec, err)
		}
	}
}

// TestLeadLapsed: a router whose lease has lapsed writes nothing, and ends, also if nobody has
// succeeded it.
func TestLeadLapsed(t *testing.T) {
	url := journaling(t)
	lapsed := error(nil)
	a := lead(t, url, "a", func() error { return lapsed })
	if err := a.commit(t, "1"); err != nil {
		t.Fatal(err)
	}
	lapsed = errors.New("not renewed")
	if err := a.commit(t, "2"); !errors.Is(err, ErrSucceeded) || !errors.Is(err, lapsed) {
		t.Errorf("%v", err)
	}
	if err := a.failed(t); !errors.Is(err, lapsed) {
		t.Errorf("%v", err)
	}
	if b := lead(t, url, "b", always); b.Next() != 1 {
		t.Errorf("%d records", b.Next())
	}
}

// TestLeadWithoutLease: a router that has lost the lease before its term stores none.
func TestLeadWithoutLease(t *testing.T) {
	url := journaling(t)
	j, err := Open(t.Context(), dialed(t, url), Options{Instance: "a"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	lost := errors.New("lost")
	if err := j.Lead(t.Context(), func() error { return lost }); !errors.Is(err, lost) || j.lastSeq() != 0 {
		t.Errorf("%v, sequence %d", err, j.lastSeq())
	}
}
