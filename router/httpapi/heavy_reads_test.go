package httpapi

import (
	"context"
	"net/http/httptest"
	"testing"

	"github.com/gin-gonic/gin"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/ratelimit"
	"aob.dev/writ/router"
)

// TestLanes: a tenant has one read of the whole record at a time, however many wait, and none takes
// the place of another tenant's.
func TestLanes(t *testing.T) {
	s := &server{heavy: ratelimit.PlacesOf(heavyShares)}
	read := func(tenant string, fn func(context.Context) (any, error)) error {
		_, err := s.heavily(&visitor{Context: &gin.Context{Request: httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)}, Reader: &router.Reader{Grant: intents.Grant{Tenant: tenant}}}, fn)
		return err
	}
	const reads = 8
	began, more, ended := make(chan struct{}, reads), make(chan struct{}), make(chan error, reads)
	for range reads {
		go func() {
			ended <- read("acme", func(context.Context) (any, error) {
				began <- struct{}{}
				<-more
				return nil, nil
			})
		}()
	}
	<-began
	if err := read("beta", func(context.Context) (any, error) { return nil, nil }); err != nil {
		t.Errorf("one tenant's reads keep another's from beginning: %v", err)
	}
	if len(began) != 0 {
		t.Error("two reads of a tenant at once")
	}
	close(more)
	for range reads {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if s.heavy.Used() != 0 || s.heavy.Waiting() != 0 {
		t.Error("a place stays taken")
	}
}
