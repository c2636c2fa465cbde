package e2e

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"aob.dev/writ/internal/problem/edge"
)

// occupy opens a connection, writes something to it and leaves it open.
func (s *system) occupy(says string) *bufio.Reader {
	s.t.Helper()
	c, err := new(net.Dialer).DialContext(s.t.Context(), "tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.Close() })
	if _, err := fmt.Fprint(c, says); err != nil {
		s.t.Fatal(err)
	}
	return bufio.NewReader(c)
}

// fresh asks on a connection of its own; 0 if that is closed without an answer.
func (s *system) fresh(path string) int {
	s.t.Helper()
	one := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, addr)
	}}}
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.url+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	resp, err := one.Do(req)
	if err != nil {
		s.t.Logf("%s: %v", path, err)
		return 0
	}
	if err := resp.Body.Close(); err != nil {
		s.t.Error(err)
	}
	return resp.StatusCode
}

// TestConnectionsThatWait: as many idle connections as one address may have, and
// more, shut nobody out; nor do senders that do not go on.
func TestConnectionsThatWait(t *testing.T) {
	s := start(t, setup{})
	for range edge.Default.PerAddress + 50 {
		r := s.occupy("GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
	}
	for _, path := range []string{"/readyz", "/v1/catalog"} {
		if got := s.fresh(path); got != http.StatusOK {
			t.Errorf("%s among idle connections: HTTP %d", path, got)
		}
	}
	for range edge.Default.PerAddress + 50 {
		s.occupy("POST /v1/batches HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{")
	}
	// Spare connections have first to refuse the senders that are one too many.
	s.await("an answer among senders that wait", func() bool { return s.fresh("/readyz") == http.StatusOK })
}
