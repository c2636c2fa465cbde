package node

import (
	"net/http"
	"testing"

	"aob.dev/writ/internal/problem/edge"
)

// A request that never ends is ended: POST /v1/intents asks for no credential.
func TestServerBoundsRequests(t *testing.T) {
	s := edge.Default.Server(http.NotFoundHandler())
	if s.ReadTimeout <= 0 || s.ReadHeaderTimeout <= 0 || s.IdleTimeout <= 0 || s.MaxHeaderBytes <= 0 {
		t.Errorf("no limit on headers %v, body %v, idling %v or size %d", s.ReadHeaderTimeout, s.ReadTimeout, s.IdleTimeout, s.MaxHeaderBytes)
	}
}
