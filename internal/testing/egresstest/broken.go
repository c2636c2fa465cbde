// Package egresstest has servers that fail in every way that a door has words for.
package egresstest

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Broken is a server that fails.
type Broken struct {
	URL  string // http://host:port
	Says string // text that an error must contain
	Do   string // beginning of the advice
}

// Servers refuse, are silent, hang up, or answer with a status.
func Servers(t testing.TB) map[string]Broken {
	t.Helper()
	list := map[string]Broken{
		"refuses":    {"http://" + closed(t), "nothing listens there (connection refused)", "start it, or correct "},
		"is silent":  {"http://" + listen(t, func(net.Conn) {}), "no answer in time", "start it, or correct "},
		"hangs up":   {"http://" + listen(t, func(c net.Conn) { _ = c.Close() }), "it closed the connection without an answer", "start it, or correct "},
		"has no TLS": {"https://" + strings.TrimPrefix(status(t, http.StatusOK), "http://"), "it speaks no TLS", "correct "},
	}
	for code, do := range map[int][2]string{
		http.StatusUnauthorized:        {"it does not take the credentials (HTTP 401)", "correct "},
		http.StatusForbidden:           {"it does not permit this with these credentials (HTTP 403)", "correct "},
		http.StatusNotFound:            {"it has nothing of the kind at this address (HTTP 404)", "correct "},
		http.StatusTemporaryRedirect:   {"it sends on to another address, where nothing is sent (HTTP 307)", "correct "},
		http.StatusInternalServerError: {"it fails (HTTP 500)", "see its log"},
	} {
		list[http.StatusText(code)] = Broken{status(t, code), do[0], do[1]}
	}
	return list
}

// Check checks an error of a door: it has the text, the unaffected part and the advice, and no text
// of a library.
func (b Broken) Check(t testing.TB, err error, stands string) {
	t.Helper()
	if err == nil {
		t.Error("no error")
		return
	}
	text := err.Error()
	if !strings.Contains(text, b.Says+"; "+stands) || !strings.Contains(text, "; "+b.Do) {
		t.Errorf("%q does not say %q, that %q, and to %q", text, b.Says, stands, b.Do)
	}
	text, _, _ = strings.Cut(text, " (cause: ")
	for _, word := range []string{"dial tcp", "Get \"", "Post \"", "nats:", "opensearch ", "unavailable", "EOF", "i/o"} {
		if strings.Contains(text, word) {
			t.Errorf("%q: %q is a word of a library", text, word)
		}
	}
}

func status(tb testing.TB, code int) string {
	tb.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "http://127.0.0.1:1/")
		w.WriteHeader(code)
	}))
	tb.Cleanup(s.Close)
	return s.URL
}

// listen gives every connection to fn. They are closed when the test ends.
func listen(tb testing.TB, fn func(net.Conn)) string {
	tb.Helper()
	l, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	done := make(chan struct{})
	tb.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer c.Close()
			fn(c)
		}
	}()
	return l.Addr().String()
}

// closed is an address where nobody listens.
func closed(tb testing.TB) string {
	tb.Helper()
	l, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	_ = l.Close()
	return l.Addr().String()
}
