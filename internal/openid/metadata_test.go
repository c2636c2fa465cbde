package openid

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// TestMetadata: what a provider says of itself is read again after an hour, and stays while it does not
// answer. Other settings of the provider count at once, without it being asked.
func TestMetadata(t *testing.T) {
	var at *httptest.Server
	place, asked, down := "/one", 0, false
	at = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked++; down {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"issuer": at.URL, "token_endpoint": at.URL + place, "authorization_endpoint": at.URL + "/a", "jwks_uri": at.URL + "/k"})
	}))
	t.Cleanup(at.Close)
	now := time.Unix(1_800_000_000, 0)
	list := func(client string) []Provider { return []Provider{{Issuer: at.URL, Client: Client{ID: client}}} }
	p := New(list("writ"), func() time.Time { return now }, slog.New(slog.DiscardHandler))
	for _, step := range []struct {
		after  time.Duration
		place  string
		down   bool
		client string
		want   string
		asked  int
	}{
		{0, "/one", false, "writ", "/one", 1},
		{metadataLife - time.Second, "/two", false, "writ", "/one", 1},
		{time.Second, "/two", false, "writ", "/two", 2},
		{metadataLife, "/three", true, "writ", "/two", 3},
		{0, "/three", false, "other", "/two", 3},
		{metadataLife, "/three", false, "other", "/three", 4},
	} {
		now, place, down = now.Add(step.after), step.place, step.down
		p.Replace(list(step.client))
		_, c, err := p.client(t.Context(), at.URL)
		if err != nil || c.Endpoint.TokenURL != at.URL+step.want || c.ClientID != step.client || asked != step.asked {
			t.Errorf("%+v: %s, asked %d times, %v", step, c.Endpoint.TokenURL, asked, err)
		}
	}
	p.Replace(nil)
	if _, _, err := p.client(t.Context(), at.URL); err == nil || p.Names("x.eyJpc3MiOiJ4In0.x") || p.Issuers() != nil {
		t.Errorf("a provider that is gone: %v", err)
	}
}
