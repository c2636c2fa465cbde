package e2e

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/internal/node"
	"aob.dev/writ/storage/sqlite"
)

// startWithin opens a node with limits and runs it until the test ends.
func startWithin(t *testing.T, dir string, l node.Limits) *system {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	n, err := node.Open(ctx, node.Config{
		Dir: dir, Documents: documents(dir), Listen: "127.0.0.1:0", Model: model.Offline{}, Now: time.Now, Limits: l,
		Log: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		stop()
		t.Fatal(err)
	}
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- n.Run(ctx, ready) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("node: %v", err)
		}
		if err := n.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	select {
	case <-ready:
	case err := <-ended:
		ended <- nil
		t.Fatalf("node: %v", err)
	}
	key, err := n.LocalKey()
	if err != nil {
		t.Fatal(err)
	}
	return &system{t: t, node: n, dir: dir, url: "http://" + n.Addr().String(), key: key}
}

// upload keeps so many bytes. Without a length they come in chunks.
func (s *system) upload(size int, sized bool) (status int, retry string) {
	s.t.Helper()
	body := bytes.NewReader(bytes.Repeat([]byte{byte(size)}, size))
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.url+"/agent/artifacts", body)
	if err != nil {
		s.t.Fatal(err)
	}
	if !sized {
		req.ContentLength = -1
	}
	req.Header.Set("X-Api-Key", s.key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil {
		s.t.Error(err)
	}
	return resp.StatusCode, resp.Header.Get("Retry-After")
}

// refusedUpload also sees that orders go on.
func (s *system) refusedUpload(size int) {
	s.t.Helper()
	for _, sized := range []bool{true, false} {
		if status, retry := s.upload(size, sized); status != http.StatusTooManyRequests || retry == "" {
			s.t.Errorf("%d bytes: HTTP %d, Retry-After %q", size, status, retry)
		}
	}
	if status, p := s.call(s.as("local"), http.MethodGet, "/agent/memory/query?query_text=x", nil, nil); status != http.StatusOK {
		s.t.Errorf("orders: HTTP %d %+v", status, p)
	}
}

// TestUploadsStopAtTheQuota: a tenant that holds as much as it may is refused
// more, whether or not it says how much.
func TestUploadsStopAtTheQuota(t *testing.T) {
	s := startWithin(t, t.TempDir(), node.Limits{TenantDisk: 16 << 20})
	if status, _ := s.upload(6<<20, true); status != http.StatusCreated {
		t.Fatalf("HTTP %d", status)
	}
	s.refusedUpload(12 << 20)
}

// TestUploadsStopAboveTheFloor: where the disk is nearly full nothing is received
// any more, and orders go on.
func TestUploadsStopAboveTheFloor(t *testing.T) {
	dir := t.TempDir()
	free, err := sqlite.Free(dir)
	if err != nil {
		t.Fatal(err)
	}
	s := startWithin(t, dir, node.Limits{FreeFloor: free * 3 / 4})
	s.refusedUpload(1 << 20)
}
