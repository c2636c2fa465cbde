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

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
)

// tape is one artifact, which may be damaged: its store reports that at the end of reading.
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

// An artifact that does not match its digest is refused before its first byte.
func TestDamagedArtifact(t *testing.T) {
	w, a, path := withTape(t, -1)
	a.damaged = true
	if status, got, _ := w.bytes(path, nil); status != http.StatusInternalServerError || strings.Contains(got, string(a.bytes[:10])) {
		t.Errorf("%d %q", status, got)
	}
}

// ana is a reader of links.
var ana = intents.Principal{Tenant: "acme", UserID: "ana", Roles: []string{"user"}}

// TestLinkOfItsReader: a link acts for its reader. It ends with that reader's right to read, and
// another user's key is refused with it.
func TestLinkOfItsReader(t *testing.T) {
	w, a, _ := withTape(t, -1)
	made := func(reader intents.Principal) string {
		link, _, err := w.gateway.cfg.Links.Link(reader, intents.ClientOf("k1"), "cas://"+intents.Digest(a.bytes), w.clock.Now())
		if err != nil {
			t.Fatal(err)
		}
		return link
	}
	anyone, carl := http.Header{"X-Api-Key": nil}, http.Header{"X-Api-Key": {appKey}, "X-User-Id": {"carl"}}
	link := made(ana)
	for name, header := range map[string]http.Header{"no key": anyone, "the reader's": nil} {
		if status, _, _ := w.bytes(link, header); status != http.StatusOK {
			t.Errorf("%s: %d", name, status)
		}
	}
	w.refused("GET", link, "", carl, intents.RBACForbidden, "")
	w.refused("GET", link, "", http.Header{"X-Api-Key": {"nobody's"}}, intents.Unauthorized, "")
	w.refused("GET", made(intents.Principal{Tenant: "acme", UserID: "eve", Roles: []string{"user"}}), "", anyone, intents.RBACForbidden, "") // disabled
	w.set(func(c *core) { c.mayNot = "artifacts:read" })
	w.refused("GET", link, "", anyone, intents.RBACForbidden, "")
	w.set(func(c *core) {
		c.mayNot = ""
		c.users["ana"] = bus.UserReply{Roles: []string{"user"}, RevokedBefore: w.clock.Now()}
	})
	w.refused("GET", link, "", anyone, intents.GrantInvalid, "")
}

// Links have a rate by address, and so do guessed links.
func TestLinksAreMetered(t *testing.T) {
	w, a, path := withTape(t, 2)
	link, _, err := w.gateway.cfg.Links.Link(ana, intents.ClientOf("k1"), "cas://"+intents.Digest(a.bytes), w.clock.Now())
	if err != nil {
		t.Fatal(err)
	}
	anyone := http.Header{"X-Api-Key": nil}
	for name, to := range map[string]string{"link": link, "forged": path + "?before=1&client=&mac=AAAA&roles=&tenant=acme&user=ana"} {
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
