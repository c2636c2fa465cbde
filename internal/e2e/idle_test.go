package e2e

import (
	"bufio"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	mcpclient "github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

// waiting is how many tabs of the console, and clients, wait at once.
const waiting = 20

// TestIdleRecordsNothing: whoever only waits, in front of the console or as an MCP client that listens
// for changes, has nothing recorded.
func TestIdleRecordsNothing(t *testing.T) {
	t.Parallel()
	s := start(t, setup{})
	ana := s.as("ana")
	tabs := make([]*bufio.Scanner, waiting)
	for i := range tabs {
		tabs[i] = s.at(ana).live()
	}
	for range waiting {
		s.listening(ana)
	}
	look := func() {
		t.Helper()
		for _, tab := range tabs {
			for { // to the end of one answer to "has anything changed?"
				if !tab.Scan() {
					t.Fatalf("a tab's stream has ended: %v", tab.Err())
				}
				if tab.Text() == "" {
					break
				}
			}
		}
	}
	const settling, quiet = 20, 3
	for looks, same, last := 0, 0, int64(-1); same < quiet; looks++ {
		look()
		next := s.node.Records().Next()
		if same++; next != last {
			same, last = 0, next
		}
		if looks == settling {
			t.Fatalf("after %d looks of %d tabs there are still new records: the last has position %d", looks, waiting, next-1)
		}
	}
}

// live opens the stream that tells a page of the console of changes.
func (b *browser) live() *bufio.Scanner {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, b.s.url+"/console/live", nil)
	if err != nil {
		b.t.Fatal(err)
	}
	resp, err := b.web.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = resp.Body.Close() })
	if resp.StatusCode != http.StatusOK || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		b.t.Fatalf("HTTP %d %s", resp.StatusCode, resp.Header.Get("Content-Type"))
	}
	return bufio.NewScanner(resp.Body)
}

// listening is an MCP client of a person that has listed the tools and waits for changes.
func (s *system) listening(who person) {
	s.t.Helper()
	c, err := mcpclient.NewStreamableHttpClient(s.url+"/mcp", transport.WithHTTPHeaders(map[string]string{"Authorization": "Bearer " + who.key, "X-User-Id": who.user}),
		transport.WithContinuousListening(), //nolint:staticcheck // SA1019: this revision of the protocol has no other way to listen
		transport.WithHTTPLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.Close() })
	if err := c.Start(context.WithoutCancel(s.t.Context())); err != nil {
		s.t.Fatal(err)
	}
	hello := mcp.InitializeRequest{Params: mcp.InitializeParams{ProtocolVersion: mcp.ProtocolVersion20251125, ClientInfo: mcp.Implementation{Name: "test", Version: "1"}}}
	if _, err := c.Initialize(s.t.Context(), hello); err != nil {
		s.t.Fatal(err)
	}
	if _, err := c.ListTools(s.t.Context(), mcp.ListToolsRequest{}); err != nil {
		s.t.Fatal(err)
	}
}
