package edge_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/problem"
	"aob.dev/writ/internal/problem/edge"
)

// Headers that no handler needs to see are refused as problems.
func TestCheck(t *testing.T) {
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	if _, err := io.CopyN(z, zeros{}, 10<<20); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, header, value string
		body                []byte
		status              int // 0: not refused
	}{
		{"nothing", "", "", []byte("{}"), 0},
		{"JSON", "Content-Type", "application/json; charset=utf-8", []byte("{}"), 0},
		{"a JSON of its own", "Content-Type", "application/jose+json", []byte("{}"), 0},
		{"identity", "Content-Encoding", "identity", []byte("{}"), 0},
		{"no body", "Content-Type", "text/plain", nil, 0},
		{"a bomb", "Content-Encoding", "gzip", bomb.Bytes(), http.StatusUnsupportedMediaType},
		{"two encodings", "Content-Encoding", "gzip, br", []byte("x"), http.StatusUnsupportedMediaType},
		{"two ranges", "Range", "bytes=0-0,2-2", nil, http.StatusRequestedRangeNotSatisfiable},
		{"one range", "Range", "bytes=0-0", nil, 0},
		{"a form", "Content-Type", "application/x-www-form-urlencoded", []byte("a=b"), http.StatusUnsupportedMediaType},
		{"plain text", "Content-Type", "text/plain", []byte("{}"), http.StatusUnsupportedMediaType},
		{"no media type", "Content-Type", "json", []byte("{}"), http.StatusUnsupportedMediaType},
		{"JSON of others", "Content-Type", "image/svg+json", []byte("{}"), http.StatusUnsupportedMediaType},
		{"large", "X-Large", strings.Repeat("a", 33<<10), nil, http.StatusRequestHeaderFieldsTooLarge},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", bytes.NewReader(c.body))
		r.Header.Set("X-Any", "thing")
		if c.header != "" {
			r.Header.Set(c.header, c.value)
		}
		p := edge.Check(r)
		if (p == nil) != (c.status == 0) || p != nil && (p.Status != c.status || p.Hint == "" || p.Detail == "" || p.Type == "") {
			t.Errorf("%s: %+v", c.name, p)
		}
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

func TestTraceID(t *testing.T) {
	for header, want := range map[string]string{
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01": "0af7651916cd43dd8448eb211c80319c",
		"00-00000000000000000000000000000000-b7ad6b7169203331-01": "",
		"nonsense": "", "": "",
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		r.Header.Set("Traceparent", header)
		got := edge.TraceID(r)
		if len(got) != 32 || (want != "") != (got == want) {
			t.Errorf("%q: %s", header, got)
		}
	}
}

// impatient limits for sockets of a test.
var impatient = edge.Limits{Header: 200 * time.Millisecond, Body: 500 * time.Millisecond, Idle: 200 * time.Millisecond, Connections: 2, PerAddress: 2, Spare: 1}

// listen serves echoes of what was read of a body, or a problem.
func listen(t *testing.T, limits edge.Limits) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := limits.Server(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p := edge.Check(r); p != nil {
			p.Write(w)
			return
		}
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			problem.New(intents.SchemaInvalid, "", "the body could not be read").Write(w)
			return
		}
		_, _ = w.Write([]byte("read"))
	}))
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(limits.Listener(l)) }()
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		<-ended
	})
	return l.Addr().String()
}

func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// A client that sends its header byte by byte loses the connection.
func TestSlowHeader(t *testing.T) {
	c := dial(t, listen(t, impatient))
	if _, err := io.WriteString(c, "POST / HTTP/1.1\r\nHost: x\r\nX-Slow: "); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(c); err != nil || bytes.Contains(got, []byte("200 OK")) {
		t.Errorf("%q, %v", got, err)
	}
}

// One that never ends its body gets a problem, and loses the connection.
func TestSlowBody(t *testing.T) {
	c := dial(t, listen(t, impatient))
	if _, err := io.WriteString(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{"); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(c)
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	var p problem.Problem
	if err := json.NewDecoder(resp.Body).Decode(&p); err != nil || resp.StatusCode != http.StatusBadRequest || p.Code != intents.SchemaInvalid {
		t.Errorf("%d %+v, %v", resp.StatusCode, p, err)
	}
	if err := resp.Body.Close(); err != nil {
		t.Error(err)
	}
	if rest, err := io.ReadAll(r); len(rest) > 0 || err != nil {
		t.Errorf("%q, %v", rest, err)
	}
}

// A connection without a request ends.
func TestIdle(t *testing.T) {
	c := dial(t, listen(t, impatient))
	if _, err := fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(c); err != nil || !bytes.HasPrefix(got, []byte("HTTP/1.1 200")) {
		t.Errorf("%q, %v", got, err)
	}
}

// A header beyond what net/http reads is answered, not read on.
func TestHugeHeader(t *testing.T) {
	c := dial(t, listen(t, impatient))
	go func() {
		_, _ = io.Copy(c, io.MultiReader(strings.NewReader("GET / HTTP/1.1\r\nX: "), io.LimitReader(letters{}, 1<<20)))
	}()
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return // reset while it still wrote
	}
	if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("%d", resp.StatusCode)
	}
	_ = resp.Body.Close()
}

type letters struct{}

func (letters) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 'a'
	}
	return len(b), nil
}

// A spare connection that is refused ends, although its client still owes the body: 32 slow
// senders would keep health checks out.
func TestSpareOwesBody(t *testing.T) {
	patient := impatient
	patient.Body = time.Hour
	addr := listen(t, patient)
	const slow = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n"
	for range patient.Connections { // that a handler reads from
		c := dial(t, addr)
		if _, err := io.WriteString(c, slow+"Expect: 100-continue\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, make([]byte, len("HTTP/1.1 100 Continue\r\n\r\n"))); err != nil {
			t.Fatal(err)
		}
	}
	spare := dial(t, addr)
	if _, err := io.WriteString(spare, slow+"\r\n{"); err != nil {
		t.Fatal(err)
	}
	if err := spare.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(spare)
	if err != nil || !bytes.Contains(got, []byte("OVERLOADED")) {
		t.Errorf("%q, %v", got, err)
	}
}
