package storagetest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"aob.dev/writ/storage"
	"aob.dev/writ/storage/blobdir"
	"aob.dev/writ/storage/blobnats"
	"aob.dev/writ/storage/quota"
)

// TestBlobs runs the suite for every driver but S3, which TestIntegrationBlobs does, and for
// a store within limits that are not reached.
func TestBlobs(t *testing.T) {
	for name, open := range map[string]func(testing.TB) storage.Blobs{
		"dir": func(t testing.TB) storage.Blobs {
			t.Helper()
			return openDir(t, "[blobs]*") // no part of a path is a pattern
		},
		"quota": func(t testing.TB) storage.Blobs {
			t.Helper()
			free := func() (int64, error) { return 1 << 40, nil }
			return quota.New(openDir(t, "blobs"), quota.Limits{Free: free, Floor: 1, Tenant: 1 << 40})
		},
		"nats": openNATS(t),
	} {
		t.Run(name, func(t *testing.T) { testBlobs(t, open) })
	}
}

func openDir(t testing.TB, name string) *blobdir.Blobs {
	t.Helper()
	b, err := blobdir.Open(filepath.Join(t.TempDir(), name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// openNATS opens buckets of one server with JetStream.
func openNATS(t *testing.T) func(testing.TB) storage.Blobs {
	t.Helper()
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(),
		DisableJetStreamBanner: true, NoLog: true, NoSigs: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("the NATS server does not start")
	}
	var n atomic.Int64
	return func(t testing.TB) storage.Blobs {
		t.Helper()
		b, err := blobnats.Open(t.Context(), blobnats.Config{URL: fmt.Sprintf("%s?bucket=b%d", s.ClientURL(), n.Add(1))})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = b.Close() })
		return b
	}
}

// testBlobs checks storage.Blobs. open opens an empty store.
func testBlobs(t *testing.T, open func(testing.TB) storage.Blobs) {
	t.Helper()
	for name, test := range map[string]func(*blobs){
		"PutAndOpen":       testPutAndOpen,
		"SameBytesOneFile": testSameBytesOneFile,
		"OtherScope":       testOtherScope,
		"Wipe":             testWipe,
		"WipeUnderWriters": testWipeUnderWriters,
		"Sweep":            testSweep,
		"KeepAndFetch":     testKeepAndFetch,
		"OtherTenantsBlob": testOtherTenantsBlob,
		"NamesAreNoPaths":  testNamesAreNoPaths,
		"FailedReader":     testFailedReader,
		"CancelledBlob":    testCancelledBlob,
		"HalfIsNothing":    testHalfIsNothing,
		"ManyChunks":       testManyChunks,
		"Collect":          testCollect,
		"CollectOwn":       testCollectOwn,
		"DropSparesYoung":  testDropSparesYoung,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(&blobs{T: t, Blobs: open(t)})
		})
	}
}

type blobs struct {
	*testing.T
	storage.Blobs
}

var scope = storage.Scope{Tenant: "acme", Plan: "plan_1", Revision: 1, Step: 2}

func digestOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256:" + hex.EncodeToString(sum[:])
}

func (b *blobs) put(s storage.Scope, text string) storage.File {
	b.Helper()
	f, err := b.Put(b.Context(), s, strings.NewReader(text))
	if err != nil {
		b.Fatal(err)
	}
	return f
}

// reads checks the content of an opened file or blob.
func (b *blobs) reads(r io.ReadCloser, err error, want string) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
	got, err := io.ReadAll(r)
	if err := errors.Join(err, r.Close()); err != nil || string(got) != want {
		b.Fatalf("read %d bytes, %v; want %d", len(got), err, len(want))
	}
}

// opens checks the content of a file, fetches that of a blob.
func (b *blobs) opens(s storage.Scope, id, want string) {
	b.Helper()
	r, _, err := b.Open(b.Context(), s, id)
	b.reads(r, err, want)
}

func (b *blobs) fetches(ref, want string) {
	b.Helper()
	r, size, err := b.Fetch(b.Context(), "acme", ref)
	if err == nil && size != int64(len(want)) {
		b.Fatalf("fetch: %d bytes, not %d", size, len(want))
	}
	b.reads(r, err, want)
}

// sweeps checks how many scopes and parts of files are removed.
func (b *blobs) sweeps(age time.Duration, want int) {
	b.Helper()
	if n, err := b.Sweep(b.Context(), age); n != want || err != nil {
		b.Fatalf("sweep of %v = %d, %v; want %d", age, n, err, want)
	}
}

func (b *blobs) missing(s storage.Scope, id string) {
	b.Helper()
	if _, _, err := b.Open(b.Context(), s, id); !errors.Is(err, storage.ErrNotFound) {
		b.Fatalf("open %q of %+v: %v", id, s, err)
	}
}

func testPutAndOpen(b *blobs) {
	identifier := regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)
	for _, text := range []string{"", "short", strings.Repeat("long ", 300_000)} {
		f := b.put(scope, text)
		if f.Size != int64(len(text)) || f.SHA256 != digestOf(text) || !identifier.MatchString(f.ID) {
			b.Fatalf("put %d bytes: %+v", len(text), f)
		}
		r, again, err := b.Open(b.Context(), scope, f.ID)
		b.reads(r, err, text)
		if again != f {
			b.Fatalf("opened %+v, put %+v", again, f)
		}
	}
}

func testSameBytesOneFile(b *blobs) {
	first := b.put(scope, "x")
	if again := b.put(scope, "x"); again != first {
		b.Fatalf("%+v, then %+v", first, again)
	}
	if other := b.put(scope, "y"); other.ID == first.ID {
		b.Fatal("other bytes have the same id")
	}
}

func testOtherScope(b *blobs) {
	f := b.put(scope, "x")
	for _, other := range []storage.Scope{
		{Tenant: "other", Plan: "plan_1", Revision: 1, Step: 2},
		{Tenant: "acme", Plan: "plan_2", Revision: 1, Step: 2},
		{Tenant: "acme", Plan: "plan_1", Revision: 2, Step: 2},
		{Tenant: "acme", Plan: "plan_1", Revision: 1, Step: 3},
		{Tenant: "acme", Plan: "plan_11", Step: 2},
		{Tenant: "acme", Plan: "plan_1", Revision: 1, Step: 2, Ask: "1.0"},
	} {
		b.missing(other, f.ID)
		if mine := b.put(other, "x"); mine.ID == f.ID {
			b.Fatalf("the id is the same in %+v", other)
		}
	}
}

func testWipe(b *blobs) {
	f := b.put(scope, "x")
	next := scope
	next.Step++
	kept := b.put(next, "y")
	for range 2 {
		if err := b.Wipe(b.Context(), scope); err != nil {
			b.Fatal(err)
		}
		b.missing(scope, f.ID)
	}
	b.opens(next, kept.ID, "y")
	f = b.put(scope, "x") // a scope may begin again
	b.opens(scope, f.ID, "x")
}

func testWipeUnderWriters(b *blobs) {
	together(func(i int) {
		if i%4 == 0 {
			if err := b.Wipe(b.Context(), scope); err != nil {
				b.Error(err)
			}
			return
		}
		if _, err := b.Put(b.Context(), scope, strings.NewReader(strings.Repeat("x", i))); err != nil {
			b.Error(err)
		}
	})
}

func testSweep(b *blobs) {
	f := b.put(scope, "x")
	ref := b.keep("acme", "kept")
	b.sweeps(time.Hour, 0)
	b.opens(scope, f.ID, "x")
	b.sweeps(0, 1)
	b.missing(scope, f.ID)
	b.fetches(ref, "kept") // blobs have no age
}

func testKeepAndFetch(b *blobs) {
	for range 2 {
		ref, size, err := b.Keep(b.Context(), "acme", strings.NewReader("text"))
		if err != nil || size != 4 || ref != "cas://"+digestOf("text") {
			b.Fatalf("keep = %q, %d, %v", ref, size, err)
		}
		b.fetches(ref, "text")
	}
}

func testOtherTenantsBlob(b *blobs) {
	ref := b.keep("acme", "text")
	if b.kept("other", ref) {
		b.Fatal("another tenant fetched it")
	}
	for _, bad := range []string{
		"", "cas://", digestOf("text"), "cas://sha256:", "cas://sha256:../../x", strings.ToUpper(ref), ref + "0", ref[:len(ref)-1],
		"cas://" + digestOf("other"),
	} {
		if b.kept("acme", bad) {
			b.Fatalf("fetched %q", bad)
		}
	}
}

func testNamesAreNoPaths(b *blobs) {
	f := b.put(scope, "x")
	for _, id := range []string{"", ".", "..", "../" + f.ID, "./" + f.ID, f.ID + "/", f.ID[:len(f.ID)-1], "*", f.ID + ".", f.ID + "\x00"} {
		b.missing(scope, id)
	}
	odd := storage.Scope{Tenant: "../../etc", Plan: "a/../b\x00*"}
	f = b.put(odd, "odd")
	b.opens(odd, f.ID, "odd")
	if err := b.Wipe(b.Context(), odd); err != nil {
		b.Fatal(err)
	}
	for _, err := range []error{
		func() error { _, err := b.Put(b.Context(), storage.Scope{}, strings.NewReader("x")); return err }(),
		func() error { _, _, err := b.Keep(b.Context(), "", strings.NewReader("x")); return err }(),
	} {
		if err == nil {
			b.Fatal("bytes of no tenant were stored")
		}
	}
}

var errReader = errors.New("the reader broke")

func testFailedReader(b *blobs) {
	broken := func() io.Reader { return io.MultiReader(strings.NewReader("half"), iotest.ErrReader(errReader)) }
	if _, err := b.Put(b.Context(), scope, broken()); !errors.Is(err, errReader) {
		b.Fatalf("put: %v", err)
	}
	if _, _, err := b.Keep(b.Context(), "acme", broken()); !errors.Is(err, errReader) {
		b.Fatalf("keep: %v", err)
	}
	if b.kept("acme", "cas://"+digestOf("half")) {
		b.Fatal("half a blob was kept")
	}
	b.sweeps(time.Hour, 0)
}

func testCancelledBlob(b *blobs) {
	ctx, cancel := context.WithCancel(b.Context())
	cancel()
	if _, err := b.Put(ctx, scope, strings.NewReader("x")); !errors.Is(err, context.Canceled) {
		b.Fatalf("put: %v", err)
	}
	if _, _, err := b.Keep(ctx, "acme", strings.NewReader("x")); !errors.Is(err, context.Canceled) {
		b.Fatalf("keep: %v", err)
	}
	if _, _, err := b.Open(ctx, scope, "f"); !errors.Is(err, context.Canceled) {
		b.Fatalf("open: %v", err)
	}
	if _, err := b.Sweep(ctx, 0); err != nil && !errors.Is(err, context.Canceled) {
		b.Fatalf("sweep: %v", err)
	}
}
