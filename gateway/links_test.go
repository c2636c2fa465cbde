package gateway

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"aob.dev/writ/intents"
)

// tape is one artifact, which may be damaged: its store says so at its end.
type tape struct {
	Artifacts
	bytes   []byte
	damaged bool
}

func (a *tape) Fetch(context.Context, string, string) (io.ReadCloser, int64, error) {
	r := io.Reader(bytes.NewReader(a.bytes))
	if a.damaged {
		r = io.MultiReader(r, iotest.ErrReader(errors.New("it is not what its digest says")))
	}
	return io.NopCloser(r), int64(len(a.bytes)), nil
}

// withTape is a world in which ana reads one artifact.
func withTape(t *testing.T, rate int) (w *world, a *tape, path string) {
	t.Helper()
	a = &tape{bytes: make([]byte, 100_000)}
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

// An artifact that is not what its digest says is refused before its first byte.
func TestDamagedArtifact(t *testing.T) {
	w, a, path := withTape(t, -1)
	a.damaged = true
	if status, got, _ := w.bytes(path, nil); status != http.StatusInternalServerError || strings.Contains(got, string(a.bytes[:10])) {
		t.Errorf("%d %q", status, got)
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
