package quota_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"aob.dev/writ/storage"
	"aob.dev/writ/storage/blobdir"
	"aob.dev/writ/storage/quota"
)

const mib = 1 << 20

func open(t testing.TB, l quota.Limits) *quota.Blobs {
	t.Helper()
	b, err := blobdir.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if l.Free == nil {
		l.Free = func() (int64, error) { return 1 << 40, nil }
	}
	return quota.New(b, l)
}

// text of so many MiB, each different.
func text(n int, word string) io.Reader {
	return io.LimitReader(strings.NewReader(strings.Repeat(word+".", n*mib/(len(word)+1)+1)), int64(n)*mib)
}

var scope = storage.Scope{Tenant: "acme", Plan: "p1", Step: 1}

// TestQuotaIsOfOneTenant: a tenant's blobs, the files of its steps and what it is sending count together,
// and no other tenant's do.
func TestQuotaIsOfOneTenant(t *testing.T) {
	b := open(t, quota.Limits{Floor: -1, Tenant: 10 * mib, Exempt: "system"})
	ref, _, err := b.Keep(t.Context(), "acme", text(4, "kept"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Put(t.Context(), scope, text(4, "step")); err != nil {
		t.Fatal(err)
	}
	for name, write := range map[string]func() error{
		"keep": func() error { _, _, err := b.Keep(t.Context(), "acme", text(4, "more")); return err },
		"put":  func() error { _, err := b.Put(t.Context(), scope, text(4, "more")); return err },
		"room": func() error { return b.Room(t.Context(), "acme", 3*mib) },
	} {
		if err := write(); !errors.Is(err, storage.ErrQuota) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, tenant := range []string{"other", "system"} {
		if _, _, err := b.Keep(t.Context(), tenant, text(8, "theirs")); err != nil {
			t.Errorf("%s: %v", tenant, err)
		}
	}
	if _, _, err := b.Keep(t.Context(), "system", text(8, "much")); err != nil {
		t.Errorf("what is exempt: %v", err)
	}
	if err := b.Wipe(t.Context(), scope); err != nil {
		t.Fatal(err)
	}
	if err := b.Room(t.Context(), "acme", 5*mib); err != nil {
		t.Errorf("when the step is gone: %v", err)
	}
	if gone, err := b.Drop(t.Context(), "acme", ref, -time.Hour); err != nil || !gone {
		t.Fatal(gone, err)
	}
	if err := b.Room(t.Context(), "acme", 9*mib); err != nil {
		t.Errorf("when the blob is gone: %v", err)
	}
}

// TestQuotaCountsStoredBytes: bytes stored before count.
func TestQuotaCountsStoredBytes(t *testing.T) {
	dir := t.TempDir()
	at := func() *quota.Blobs {
		b, err := blobdir.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		return quota.New(b, quota.Limits{Floor: -1, Tenant: 6 * mib})
	}
	if _, _, err := at().Keep(t.Context(), "acme", text(4, "kept")); err != nil {
		t.Fatal(err)
	}
	b := at()
	if err := b.Room(t.Context(), "acme", 3*mib); !errors.Is(err, storage.ErrQuota) {
		t.Errorf("%v", err)
	}
	if err := b.Room(t.Context(), "acme", 2*mib); err != nil {
		t.Errorf("%v", err)
	}
}

// disk is one that fills as it is written.
type disk struct {
	free atomic.Int64
}

// through takes from the disk what is read, as a store would write it.
func (d *disk) through(r io.Reader) io.Reader {
	return readerFunc(func(p []byte) (int, error) {
		n, err := r.Read(p)
		d.free.Add(int64(-n))
		return n, err
	})
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// TestFloor: however many write at once, the disk ends above the floor.
func TestFloor(t *testing.T) {
	d := &disk{}
	d.free.Store(20 * mib)
	b := open(t, quota.Limits{Floor: 8 * mib, Tenant: -1, Free: func() (int64, error) { return d.free.Load(), nil }})
	var refused atomic.Int64
	var all sync.WaitGroup
	for i := range 6 {
		all.Go(func() {
			tenant := fmt.Sprint("t", i)
			if _, _, err := b.Keep(t.Context(), tenant, d.through(text(10, tenant))); errors.Is(err, storage.ErrFull) {
				refused.Add(1)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if free := d.free.Load(); free < 8*mib || refused.Load() == 0 {
		t.Errorf("%d bytes free, %d refused", free, refused.Load())
	}
	d.free.Store(20 * mib)
	if _, _, err := b.Keep(t.Context(), "t9", bytes.NewReader([]byte("x"))); err != nil {
		t.Errorf("what failed has left something reserved: %v", err)
	}
	if err := b.Room(t.Context(), "t9", 12*mib); err != nil {
		t.Errorf("all of what was reserved is given back: %v", err)
	}
}
