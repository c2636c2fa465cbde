package e2e

import (
	"bytes"
	"net/http"
	"testing"

	"aob.dev/writ/internal/node"
	"aob.dev/writ/storage/sqlite"
)

// upload stores so many bytes. Without a length they come in chunks.
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

// refusedUpload also sees that intents go on.
func (s *system) refusedUpload(size int) {
	s.t.Helper()
	for _, sized := range []bool{true, false} {
		if status, retry := s.upload(size, sized); status != http.StatusTooManyRequests || retry == "" {
			s.t.Errorf("%d bytes: HTTP %d, Retry-After %q", size, status, retry)
		}
	}
	if status, p := s.call(s.as("local"), http.MethodGet, "/agent/memory/query?query_text=x", nil, nil); status != http.StatusOK {
		s.t.Errorf("intents: HTTP %d %+v", status, p)
	}
}

// TestUploadsStopAtTheQuota: a tenant at its quota is refused more, with or without a stated
// length.
func TestUploadsStopAtTheQuota(t *testing.T) {
	t.Parallel()
	s := start(t, setup{Limits: node.Limits{TenantDisk: 16 << 20}})
	if status, _ := s.upload(6<<20, true); status != http.StatusCreated {
		t.Fatalf("HTTP %d", status)
	}
	s.refusedUpload(12 << 20)
}

// TestUploadsStopAboveTheFloor: where the disk is nearly full nothing is received
// any more, and intents go on.
func TestUploadsStopAboveTheFloor(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	free, err := sqlite.Free(dir)
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, setup{Dir: dir, Limits: node.Limits{FreeFloor: free * 3 / 4}})
	s.refusedUpload(1 << 20)
}
