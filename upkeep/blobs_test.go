package upkeep

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/node"
	"aob.dev/writ/storage"
)

// TestBlobsOnNATS: see blobsOn.
func TestBlobsOnNATS(t *testing.T) {
	ns, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(),
		DisableJetStreamBanner: true, NoLog: true, NoSigs: true,
	})
	must(t, err)
	ns.Start()
	t.Cleanup(func() { ns.Shutdown(); ns.WaitForShutdown() })
	if !ns.ReadyForConnections(time.Minute) {
		t.Fatal("the server does not take connections")
	}
	blobsOn(t, datadir.BlobsAt{URL: ns.ClientURL() + "?bucket=x"}, datadir.BlobsAt{URL: ns.ClientURL() + "?bucket=y"})
}

// blobsOn takes a node through a life with its blobs on a server: created there, found there by
// every command, and in no other place.
func blobsOn(t *testing.T, at, other datadir.BlobsAt) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	cfg := config(dir)
	cfg.Blobs = at
	if f := (Examination{Dir: dir, Blobs: cfg.Blobs}).blobs(t.Context()); f.Level != OK {
		t.Errorf("%+v", f)
	}
	once(t, cfg)
	if files, _, err := datadir.Usage(filepath.Join(dir, "blobs", "cas")); files != 0 || err != nil {
		t.Errorf("%d files in the directory, %v", files, err)
	}
	once(t, config(dir)) // the directory remembers the place
	b, err := datadir.OpenBlobs(t.Context(), dir)
	must(t, err)
	ref, _, err := b.Keep(t.Context(), "default", strings.NewReader("kept"))
	must(t, err)
	_, _, err = b.Keep(t.Context(), "default", strings.NewReader("young"))
	must(t, errors.Join(err, b.Close()))

	for _, wrong := range []datadir.BlobsAt{other, {URL: datadir.InDir}} {
		cfg.Blobs = wrong
		if n, err := node.Open(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "set blobs as it was") {
			t.Errorf("another place: %v, %v", n, err)
		}
		if f := (Examination{Dir: dir, Blobs: cfg.Blobs}).blobs(t.Context()); f.Level != Fail {
			t.Errorf("%+v", f)
		}
	}
	s, err := ReadStorageStatus(t.Context(), dir, datadir.DocumentsAt{}, 0)
	if err != nil || s.BlobsAt != at.URL || s.Blobs.Count < 3 {
		t.Errorf("%+v, %v", s, err)
	}
	if c, err := Collect(t.Context(), dir, datadir.DocumentsAt{}, time.Now()); err != nil || c.Blobs != 0 {
		t.Errorf("%+v, %v", c, err)
	}
	audited(t, dir, ref)

	// A copy remembers the place too.
	backup, again := filepath.Join(t.TempDir(), "copy"), filepath.Join(t.TempDir(), "again")
	_, err = MakeBackup(t.Context(), dir, backup, true, time.Now())
	must(t, err)
	_, err = Restore(t.Context(), backup, again, "", keyCopy(t, dir))
	must(t, err)
	audited(t, again, ref)
	h, err := Fsck(t.Context(), again, nil)
	if err != nil || !h.OK || h.Blobs == 0 {
		t.Errorf("%+v, %v", h, err)
	}
}

// audited checks that readers of a directory find a blob.
func audited(t *testing.T, dir, ref string) {
	t.Helper()
	a, err := datadir.OpenArchive(t.Context(), dir)
	must(t, err)
	r, _, err := a.Blobs.Fetch(t.Context(), "default", ref)
	must(t, err)
	if _, err := io.ReadAll(r); err != nil {
		t.Error(err)
	}
	must(t, errors.Join(r.Close(), a.Close()))
}

// TestBlobsPlaceRefuses: impossible places are refused before anything is made.
func TestBlobsPlaceRefuses(t *testing.T) {
	for _, at := range []datadir.BlobsAt{
		{URL: "ftp://x"}, {URL: "s3://"}, {URL: "nats://"}, {URL: datadir.InDir, CA: "x"}, {Credentials: "x"}, {URL: "nats://x", CA: "/none"},
	} {
		if err := at.Validate(); err == nil {
			t.Errorf("%+v can be", at)
		}
	}
	dir := t.TempDir()
	once(t, config(dir))
	cfg := config(dir)
	cfg.Blobs = datadir.BlobsAt{URL: "nats://127.0.0.1:1"} // no server is called: the directory's blobs are not there
	if _, err := node.Open(t.Context(), cfg); err == nil || errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("%v", err)
	}
	must(t, os.WriteFile(filepath.Join(dir, "blobs", "place.json"), []byte(`{"url":"s3://x","password":"y"}`), 0o600))
	if _, err := datadir.OpenArchive(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "password") {
		t.Errorf("%v", err)
	}
}
