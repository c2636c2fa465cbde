package mcp

import (
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
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

// TestHeaderFileChanges: a header that stands in a file is read again when that has changed, and an empty file
// changes nothing. What the server says of any of the values is hidden.
func TestHeaderFileChanges(t *testing.T) {
	var got string
	src := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Get("Authorization")
		http.Error(w, "bad credentials: "+got, http.StatusBadGateway)
	}))
	file := filepath.Join(t.TempDir(), "token")
	write := func(value string) {
		if err := os.WriteFile(file, []byte(value+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("Bearer first-one")
	src, err := parsed(t, fmt.Sprintf("{name: a, url: %q, headers: {Authorization: {file: %q}}}", src.URL, file), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct{ value, want string }{{"Bearer first-one", "Bearer first-one"}, {"Bearer second", "Bearer second"}, {"", "Bearer second"}} {
		write(step.value)
		_, err := Dial(t.Context(), src, Options{Retries: -1})
		if err == nil || got != step.want || strings.Contains(err.Error(), step.want) {
			t.Errorf("sent %q, error = %v, want %q", got, err, step.want)
		}
	}
}
