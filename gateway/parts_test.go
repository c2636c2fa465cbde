package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"aob.dev/writ/intents"
)

// tape is one artifact that counts what is read of it.
type tape struct {
	Artifacts
	bytes []byte
	read  atomic.Int64
}

type reel struct {
	*bytes.Reader
	of *tape
}

func (r reel) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.of.read.Add(int64(n))
	return n, err
}

func (reel) Close() error { return nil }

func (a *tape) Fetch(context.Context, string, string) (io.ReadCloser, int64, error) {
	return reel{bytes.NewReader(a.bytes), a}, int64(len(a.bytes)), nil
}

// withTape is a world in which ana reads one artifact of a few parts.
func withTape(t *testing.T, rate int) (w *world, a *tape, path string) {
	t.Helper()
	a = &tape{bytes: make([]byte, 20*partSize+100)}
	for i := range a.bytes {
		a.bytes[i] = byte(i / 251)
	}
	s := &shelf{}
	w = newWorld(t, nil, func(c *Config, _ *pace) {
		c.Artifacts, c.Links, c.RateLimit = a, Links{Key: []byte("a key of this test")}, rate
	})
	w.set(func(c *core) { c.shelf = s })
	if _, _, err := s.Keep(t.Context(), "acme", bytes.NewReader(a.bytes)); err != nil {
		t.Fatal(err)
	}
	return w, a, "/agent/artifacts/" + intents.Digest(a.bytes)
}

// A range costs what it gives, once the artifact has been checked.
func TestRangeCostsWhatItGives(t *testing.T) {
	w, a, path := withTape(t, -1)
	for i := range 50 {
		at := (50 - i) * 1000
		status, got, _ := w.bytes(path, http.Header{"Range": {fmt.Sprintf("bytes=%d-%d", at, at)}})
		if status != http.StatusPartialContent || got != string(a.bytes[at:at+1]) {
			t.Fatalf("byte %d: %d %q", at, status, got)
		}
	}
	if read := a.read.Load(); read > int64(len(a.bytes)+50*partSize) {
		t.Errorf("%d bytes read for 50 of %d", read, len(a.bytes))
	}
	across := 3*partSize - 5
	if _, got, _ := w.bytes(path, http.Header{"Range": {fmt.Sprintf("bytes=%d-%d", across, across+9)}}); got != string(a.bytes[across:across+10]) {
		t.Errorf("across two parts: %q", got)
	}
	if _, got, _ := w.bytes(path, nil); got != string(a.bytes) {
		t.Errorf("all of it: %d bytes", len(got))
	}
	a.read.Store(0)
	if status, _, _ := w.bytes(path, http.Header{"Range": {"bytes=9-9,8-8,7-7"}}); status != http.StatusRequestedRangeNotSatisfiable || a.read.Load() != 0 {
		t.Errorf("three ranges: %d, %d bytes read", status, a.read.Load())
	}
}

// What has changed on disk since it was checked is not sent.
func TestPartsAreChecked(t *testing.T) {
	w, a, path := withTape(t, -1)
	if status, _, _ := w.bytes(path, http.Header{"Range": {"bytes=0-0"}}); status != http.StatusPartialContent {
		t.Fatal(status)
	}
	a.bytes[5*partSize] ^= 1
	c := &content{sums: must(t)(w.gateway.checked.sumsOf(t.Context(), "acme/"+intents.Digest(nil), func() (io.ReadCloser, int64, error) { return a.Fetch(t.Context(), "", "") })), open: func() (io.ReadCloser, int64, error) {
		a.bytes[5*partSize] ^= 2
		return a.Fetch(t.Context(), "", "")
	}}
	if got, err := io.ReadAll(io.NewSectionReader(c, 0, c.sums.size)); !errors.Is(err, errDamaged) || len(got) != 5*partSize {
		t.Errorf("%v after %d bytes", err, len(got))
	}
}

func must(t *testing.T) func(sums, error) sums {
	t.Helper()
	return func(s sums, err error) sums {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
}

// However many ask at once, an artifact is read whole once.
func TestArtifactIsCheckedOnce(t *testing.T) {
	w, a, path := withTape(t, -1)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if status, _, _ := w.bytes(path, http.Header{"Range": {"bytes=0-0"}}); status != http.StatusPartialContent {
				t.Error(status)
			}
		})
	}
	all.Wait()
	if read := a.read.Load(); read > int64(len(a.bytes)+20*partSize) {
		t.Errorf("%d bytes read", read)
	}
}

// Links have a rate by address, and so has guessing them.
func TestLinksAreMetered(t *testing.T) {
	w, a, path := withTape(t, 2)
	link, err := w.gateway.cfg.Links.Link("acme", "cas://"+intents.Digest(a.bytes), w.clock.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	anyone := http.Header{"X-Api-Key": nil}
	for name, to := range map[string]string{"link": link, "forged": path + "?before=1&mac=AAAA&tenant=acme"} {
		var got []int
		for range 3 {
			status, _, _ := w.bytes(to, anyone)
			got = append(got, status)
		}
		if got[2] != http.StatusTooManyRequests || got[1] == got[2] {
			t.Errorf("%s: %v", name, got)
		}
	}
}
