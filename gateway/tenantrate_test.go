package gateway

import (
	"net/http"
	"testing"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
)

// Key ids are unique within a tenant only: a key of another tenant with the same id has a rate of
// its own.
func TestRateIsOfOneTenant(t *testing.T) {
	w := newWorld(t, nil, func(c *Config, _ *pace) { c.RateLimit = 1 })
	w.set(func(c *core) {
		c.apiKeys[intents.Digest([]byte("of another"))] = bus.APIKeyReply{Found: true, ID: "k1", Tenant: "other", UserID: "ana", MaxRoles: []string{"user"}}
	})
	for _, key := range []string{"of another", anaKey} {
		if got := w.call("GET", "/agent/memory/query?query_text=x", "", http.Header{"X-Api-Key": {key}}, nil).StatusCode; got == http.StatusTooManyRequests {
			t.Errorf("%s: %d", key, got)
		}
	}
}
