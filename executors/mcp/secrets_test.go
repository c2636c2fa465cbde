package mcp

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
)

// TestServerRepeatsItsSecrets: what a server says of its own credentials is neither
// logged nor in an error.
func TestServerRepeatsItsSecrets(t *testing.T) {
	const secret = "hunter2-hunter2"
	for _, name := range []string{"Authorization", "X-Api-Key"} {
		src := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, "bad credentials: "+r.Header.Get(name), http.StatusBadGateway)
		}))
		src, err := parsed(t, fmt.Sprintf("{name: a, url: %q, headers: {%s: \"Bearer ${TOKEN}\"}}", src.URL, name), map[string]string{"TOKEN": secret})
		if err != nil {
			t.Fatal(err)
		}
		_, err = Dial(t.Context(), src, quick())
		wantKind(t, err, ErrUnavailable, "(secret)")
		if strings.Contains(err.Error(), secret) {
			t.Errorf("the error shows %s: %v", name, err)
		}
	}

	j := newJournal()
	opt := quick()
	opt.Log = slog.New(slog.NewJSONHandler(j, nil))
	child := self(t)
	child.Secrets = []string{"ready \x1b[31mred"}
	dial(t, child, opt)
	if line := j.wait("(secret)"); strings.Contains(line, "ready") {
		t.Errorf("logged %s", line)
	}
}

// TestSourceHeaders: the headers of a source go with each request.
func TestSourceHeaders(t *testing.T) {
	src := serve(t, streamable(testServer()))
	src, err := parsed(t, fmt.Sprintf("{name: a, url: %q, headers: {authorization: Bearer of the source}}", src.URL), nil)
	if err != nil {
		t.Fatal(err)
	}
	c := dial(t, src, quick())
	res, err := c.Call(t.Context(), "echo", nil, CallMeta{})
	if err != nil || !strings.Contains(string(res.Data), "Bearer of the source") {
		t.Errorf("answered %v, error %v", res, err)
	}
}
