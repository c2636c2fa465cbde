package openid

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"golang.org/x/oauth2"
)

// TestRenewalOutlivesRequest: a browser that goes away while its token is renewed does not end the
// sign-in: the provider takes each refresh token once.
func TestRenewalOutlivesRequest(t *testing.T) {
	var at *httptest.Server
	good, asked, release := "r1", make(chan struct{}, 1), make(chan struct{})
	at = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/.well-known/openid-configuration" {
			_ = json.NewEncoder(w).Encode(map[string]any{"issuer": at.URL, "token_endpoint": at.URL + "/token", "authorization_endpoint": at.URL + "/a", "jwks_uri": at.URL + "/k"})
			return
		}
		if r.FormValue("refresh_token") != good {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"error":"invalid_grant"}`)
			return
		}
		good += "x"
		asked <- struct{}{}
		<-release
		fmt.Fprintf(w, `{"access_token":"a","token_type":"Bearer","expires_in":3600,"refresh_token":%q}`, good)
	}))
	t.Cleanup(at.Close)
	s := &Session{
		of:     New([]Provider{{Issuer: at.URL, Client: Client{ID: "writ"}}}, time.Now, slog.New(slog.DiscardHandler)),
		Issuer: at.URL, token: &oauth2.Token{AccessToken: "old", RefreshToken: "r1", Expiry: time.Now().Add(-time.Minute)},
	}
	ctx, leave := context.WithCancel(t.Context())
	go func() {
		<-asked
		leave()
		close(release)
	}()
	if _, err := s.AccessToken(ctx); err != nil {
		t.Errorf("a request that goes away: %v", err)
	}
	if token, err := s.AccessToken(t.Context()); err != nil || token != "a" {
		t.Errorf("the next one: %q, %v", token, err)
	}
}
