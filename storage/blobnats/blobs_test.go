package blobnats_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"aob.dev/writ/storage"
	"aob.dev/writ/storage/blobnats"
)

// serve runs a NATS server with JetStream on a free port of loopback.
func serve(t testing.TB) *server.Server {
	t.Helper()
	ns, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(),
		DisableJetStreamBanner: true, NoLog: true, NoSigs: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	run(t, ns)
	return ns
}

func run(t testing.TB, ns *server.Server) {
	t.Helper()
	ns.Start()
	t.Cleanup(func() {
		ns.Shutdown()
		ns.WaitForShutdown()
	})
	if !ns.ReadyForConnections(time.Minute) {
		t.Fatal("the server does not take connections")
	}
}

func open(t testing.TB, url string) *blobnats.Blobs {
	t.Helper()
	b, err := blobnats.Open(t.Context(), blobnats.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

// stream of the blobs, as another tool sees it.
func stream(t *testing.T, url string) (jetstream.JetStream, jetstream.Stream) {
	t.Helper()
	nc, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	s, err := js.Stream(t.Context(), "OBJ_writ_cas")
	if err != nil {
		t.Fatal(err)
	}
	return js, s
}

// ahead is what a writer may have taken from its reader beyond what the server
// has acknowledged: the window and the chunk that is being filled.
const ahead = 10 * (128 << 10)

// TestLarge: 100 MB go through in bounded memory, there and back. The writer never
// reads further than a few chunks beyond what the server has, and the reader
// asks for one chunk at a time.
func TestLarge(t *testing.T) {
	url := serve(t).ClientURL()
	b := open(t, url)
	_, s := stream(t, url)
	h := sha256.New()
	from := &watched{r: io.TeeReader(io.LimitReader(rand.Reader, large), h), look: func(read int64) error {
		info, err := s.Info(t.Context())
		if err != nil {
			return err
		}
		if held := read - int64(info.State.Bytes); held > ahead {
			return fmt.Errorf("%d bytes were read and are not stored", held)
		}
		return nil
	}}
	ref, size, err := b.Keep(t.Context(), "acme", from)
	if err != nil || size != large {
		t.Fatalf("%d bytes, %v", size, err)
	}
	if want := storage.RefPrefix + hex.EncodeToString(h.Sum(nil)); ref != want {
		t.Fatalf("%s, not %s", ref, want)
	}
	r, size, err := b.Fetch(t.Context(), "acme", ref)
	if err != nil || size != large {
		t.Fatalf("%d bytes, %v", size, err)
	}
	if n, err := io.Copy(io.Discard, r); n != large || err != nil { // the digest is checked
		t.Fatalf("%d bytes, %v", n, err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
}

const large = 30_000_000

// watched looks around once a megabyte or so.
type watched struct {
	r          io.Reader
	look       func(read int64) error
	read, next int64
}

func (w *watched) Read(p []byte) (int, error) {
	if w.read >= w.next {
		if err := w.look(w.read); err != nil {
			return 0, err
		}
		w.next = w.read + 1<<20
	}
	n, err := w.r.Read(p)
	w.read += int64(n)
	return n, err
}

// TestOtherToolsRead: the layout is that of NATS.
func TestOtherToolsRead(t *testing.T) {
	url := serve(t).ClientURL()
	b := open(t, url)
	text := strings.Repeat("text ", 100_000)
	ref, _, err := b.Keep(t.Context(), "acme", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	js, _ := stream(t, url)
	store, err := js.ObjectStore(t.Context(), "writ_cas")
	if err != nil {
		t.Fatal(err)
	}
	name, _, err := storage.BlobName("acme", ref)
	if err != nil {
		t.Fatal(err)
	}
	got, err := store.GetBytes(t.Context(), name)
	if err != nil || string(got) != text {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	if err := store.Delete(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.Fetch(t.Context(), "acme", ref); !errors.Is(err, storage.ErrNotFound) {
		t.Fatalf("deleted by another tool: %v", err)
	}
}

// TestDamageIsFound: bytes that were changed, and missing chunks.
func TestDamageIsFound(t *testing.T) {
	url := serve(t).ClientURL()
	b := open(t, url)
	js, s := stream(t, url)
	for name, damage := range map[string]func(subject string) error{
		"changed": func(subject string) error {
			m, err := s.GetLastMsgForSubject(t.Context(), subject)
			if err != nil {
				return err
			}
			if err := s.Purge(t.Context(), jetstream.WithPurgeSubject(subject), jetstream.WithPurgeSequence(m.Sequence+1)); err != nil {
				return err
			}
			_, err = js.Publish(t.Context(), subject, bytes.Repeat([]byte("y"), len(m.Data)))
			return err
		},
		"longer": func(subject string) error { _, err := js.Publish(t.Context(), subject, []byte("more")); return err },
		"gone":   func(subject string) error { return s.Purge(t.Context(), jetstream.WithPurgeSubject(subject)) },
	} {
		ref, _, err := b.Keep(t.Context(), "acme", strings.NewReader(name+" "))
		if err != nil {
			t.Fatal(err)
		}
		info, err := s.Info(t.Context(), jetstream.WithSubjectFilter("$O.writ_cas.C.>"))
		if err != nil || len(info.State.Subjects) != 1 {
			t.Fatalf("%v, %v", info.State.Subjects, err)
		}
		r, size, err := b.Fetch(t.Context(), "acme", ref)
		if err != nil {
			t.Fatal(err)
		}
		for subject := range info.State.Subjects {
			if err := damage(subject); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := io.ReadAll(r); (err == nil) != (name == "longer") { // what follows the end is never read
			t.Errorf("%s: read %q of %d bytes, %v", name, got, size, err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		// Stored again, it is sound again.
		if _, _, err := b.Keep(t.Context(), "acme", strings.NewReader(name+" ")); err != nil {
			t.Fatal(err)
		}
		r, _, err = b.Fetch(t.Context(), "acme", ref)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(r); err != nil {
			t.Errorf("%s: kept again: %v", name, err)
		}
		if gone, err := b.Drop(t.Context(), "acme", ref, -time.Hour); !gone || err != nil {
			t.Fatalf("%v, %v", gone, err)
		}
		if _, err := b.Sweep(t.Context(), -time.Hour); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSweepAfterCrash: a process died while it wrote, and another one
// finds chunks without a name once they are old; those of one that lives stay.
func TestSweepAfterCrash(t *testing.T) {
	url := serve(t).ClientURL()
	dead, alive := open(t, url), open(t, url)
	_, s := stream(t, url)
	text := strings.Repeat("x", 1<<20)
	halfway := func(b *blobnats.Blobs) (*io.PipeWriter, chan error) {
		r, w := io.Pipe()
		done := make(chan error, 1)
		go func() {
			_, _, err := b.Keep(t.Context(), "acme", r)
			_ = r.CloseWithError(err)
			done <- err
		}()
		if _, err := io.WriteString(w, text); err != nil {
			t.Fatal(err)
		}
		return w, done
	}
	chunks := func() (counts []uint64) {
		info, err := s.Info(t.Context(), jetstream.WithSubjectFilter("$O.writ_cas.C.>"))
		if err != nil {
			t.Fatal(err)
		}
		return slices.Sorted(maps.Values(info.State.Subjects))
	}
	arrived := func(want ...uint64) { // what was sent is there, and nothing is on its way
		for !slices.Equal(chunks(), want) {
			if t.Context().Err() != nil {
				t.Fatal(chunks())
			}
		}
	}
	w, done := halfway(dead)
	arrived(8)
	if err := dead.Close(); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	if err := <-done; err == nil {
		t.Fatal("kept without a connection")
	}
	w, done = halfway(alive)
	arrived(8, 8)
	if n, err := alive.Sweep(t.Context(), time.Hour); n != 0 || err != nil {
		t.Fatalf("sweep of an hour: %d, %v", n, err)
	}
	if n, err := alive.Sweep(t.Context(), -time.Hour); n != 1 || err != nil {
		t.Fatalf("sweep = %d, %v", n, err)
	}
	if left := chunks(); !slices.Equal(left, []uint64{8}) {
		t.Fatalf("left: %v", left)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	r, _, err := alive.Fetch(t.Context(), "acme", storage.RefPrefix+digest(text))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); err != nil || string(got) != text {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// TestReadersOutliveARewrite: a reader reads a blob to its end, although
// it is stored again meanwhile; the old chunks are removed later.
func TestReadersOutliveARewrite(t *testing.T) {
	url := serve(t).ClientURL()
	b := open(t, url)
	text := strings.Repeat("x", 1<<20)
	ref, _, err := b.Keep(t.Context(), "acme", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	r, _, err := b.Fetch(t.Context(), "acme", ref)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.Keep(t.Context(), "acme", strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); err != nil || string(got) != text {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	if n, err := b.Sweep(t.Context(), -time.Hour); n != 1 || err != nil {
		t.Fatalf("sweep = %d, %v", n, err)
	}
}

// TestBucketsThatLoseBlobs are refused, with the reason.
func TestBucketsThatLoseBlobs(t *testing.T) {
	url := serve(t).ClientURL()
	open(t, url)
	js, _ := stream(t, url)
	for name, cfg := range map[string]jetstream.ObjectStoreConfig{
		"expires after": {TTL: time.Hour},
		"in memory":     {Storage: jetstream.MemoryStorage},
	} {
		cfg.Bucket = "odd_cas"
		if _, err := js.CreateObjectStore(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
		_, err := blobnats.Open(t.Context(), blobnats.Config{URL: url + "?bucket=odd"})
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
		if err := js.DeleteObjectStore(t.Context(), cfg.Bucket); err != nil {
			t.Fatal(err)
		}
	}
}

func TestConfigRefuses(t *testing.T) {
	for url, want := range map[string]string{
		"http://x:4222":                  "neither nats://",
		"nats://":                        "names no host",
		"nats://user:secret@x:4222":      "environment",
		"nats://x:4222?bucket=a.b":       "bucket",
		"nats://x:4222?replicas=many":    "many",
		"nats://x:4222?replicas=9":       "replicas",
		"nats://x:4222?pass=1":           "neither bucket nor replicas",
		"nats://x:4222,tls://y/?bucket=": "names no host",
	} {
		err := blobnats.Config{URL: url}.Validate()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", url, err)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("the error tells a password: %v", err)
		}
	}
	if err := (blobnats.Config{URL: "nats://x", CA: []byte("none")}).Validate(); err == nil {
		t.Error("no certificate is one")
	}
	for _, url := range []string{"nats://a:4222,b:4222?bucket=x&replicas=3", "tls://a"} {
		if err := (blobnats.Config{URL: url}).Validate(); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// TestServerMissing: what cannot be reached may be tried again.
func TestServerMissing(t *testing.T) {
	if _, err := blobnats.Open(t.Context(), blobnats.Config{URL: "nats://127.0.0.1:1"}); !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("open: %v", err)
	}
	ns := serve(t)
	b := open(t, ns.ClientURL())
	ns.Shutdown()
	ns.WaitForShutdown()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := b.Fetch(ctx, "acme", storage.RefPrefix+digest("")); !errors.Is(err, context.Canceled) {
		t.Errorf("fetch: %v", err)
	}
}

// TestCredentials: a server that asks for a name gets that of the file.
func TestCredentials(t *testing.T) {
	ns, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), Username: "writ", Password: "secret",
		DisableJetStreamBanner: true, NoLog: true, NoSigs: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	run(t, ns)
	file := filepath.Join(t.TempDir(), "credentials")
	for text, want := range map[string]string{
		"":                "neither",
		"two lines\nhere": "neither",
		"token":           "Authorization",
		"writ:wrong":      "Authorization",
		"writ:secret\n":   "",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		b, err := blobnats.Open(t.Context(), blobnats.Config{URL: ns.ClientURL(), Credentials: file})
		if b != nil {
			_ = b.Close()
		}
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
		if err != nil && strings.Contains(err.Error(), "wrong") {
			t.Errorf("the error tells a password: %v", err)
		}
	}
}
