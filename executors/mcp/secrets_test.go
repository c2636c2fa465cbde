package mcp

import (
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
		if err := src.Set("header", name+"=Bearer "+secret); err != nil {
			t.Fatal(err)
		}
		src.Secrets = append(src.Secrets, secret)
		_, err := Dial(t.Context(), src, quick())
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

// TestSourceHeaders: the headers of a source go with each request, and its errors show
// no value.
func TestSourceHeaders(t *testing.T) {
	src := serve(t, streamable(testServer()))
	if err := src.Set("header", "authorization=Bearer of the source"); err != nil {
		t.Fatal(err)
	}
	c := dial(t, src, quick())
	res, err := c.Call(t.Context(), "echo", nil, CallMeta{})
	if err != nil || !strings.Contains(string(res.Data), "Bearer of the source") {
		t.Errorf("answered %v, error %v", res, err)
	}
	for text, want := range map[string]string{
		"=hunter2": "name", "A B=hunter2": "name", "X=": "one line", "X=hunter2\nY: z": "one line",
		"host=hunter2": "sets Host itself", "mcp-session-id=hunter2": "itself", "Authorization=hunter2": "twice",
	} {
		if err := src.Set("header", text); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: error = %v, want %q", text, err, want)
		}
	}
}
