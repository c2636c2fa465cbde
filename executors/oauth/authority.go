package oauth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"aob.dev/writ/executors/mcp"
	"aob.dev/writ/internal/egress"
	"aob.dev/writ/internal/visible"
)

// authority is the authorization server of a skill server.
type authority struct {
	*oauthex.AuthServerMeta
	Resource string   // the identifier of the skill server
	Scopes   []string // to ask for
}

const (
	authorityAge  = 5 * time.Minute
	discoveryTime = 20 * time.Second
	maxScopes     = 100
)

// authority finds the authorization server of a skill server, which a found one answers for some
// minutes; anew: not.
func (c *Connections) authority(ctx context.Context, s *server, anew bool) (*authority, error) {
	s.mu.Lock()
	found, age := s.found, c.Now().Sub(s.at)
	s.mu.Unlock()
	if found != nil && !anew && age >= 0 && age < authorityAge {
		return found, nil
	}
	ctx, cancel := context.WithTimeout(ctx, discoveryTime)
	defer cancel()
	found, err := s.discover(ctx)
	if err != nil {
		return nil, unreachable("its authorization server cannot be found", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.found, s.at = found, c.Now()
	return found, nil
}

// unreachable is the error of a request to an authorization server. The server's own words are not
// in it, unless they are those of a discovery.
func unreachable(what string, err error) error {
	var refused *egress.RefusedError
	if errors.As(err, &refused) {
		return &mcp.Error{Kind: mcp.ErrRefused, Reason: refused.Error(), Undelivered: true, Barred: true}
	}
	return &mcp.Error{Kind: mcp.ErrUnavailable, Reason: what + ": " + visible.Line(egress.Plain(err).Error(), maxReason), Undelivered: true}
}

const (
	maxReason = 500
	maxIssuer = 1024
)

// discover asks the skill server for its authorization server (RFC 9728), and that for its addresses
// (RFC 8414). A server that names none is its own, as in MCP 2025-03-26.
func (s *server) discover(ctx context.Context) (*authority, error) {
	a := &authority{Resource: s.URL, Scopes: s.OAuth.Scopes}
	origin, err := url.Parse(s.URL)
	if err != nil {
		return nil, err
	}
	origin.Path, origin.RawQuery = "", ""
	issuer := s.OAuth.Issuer
	if m := s.metadata(ctx, origin.String()); m != nil {
		a.Resource = m.Resource
		if a.Scopes == nil {
			a.Scopes = m.ScopesSupported
		}
		if issuer == "" && len(m.AuthorizationServers) > 0 {
			issuer = m.AuthorizationServers[0]
		}
	}
	a.Scopes = a.Scopes[:min(len(a.Scopes), maxScopes)]
	issuer = cmp.Or(issuer, origin.String())
	if a.AuthServerMeta, err = auth.GetAuthServerMetadata(ctx, issuer, s.http); err != nil {
		return nil, err
	}
	if a.AuthServerMeta == nil {
		return nil, fmt.Errorf("%s has no metadata (RFC 8414)", visible.Line(issuer, maxReason))
	}
	if a.TokenEndpoint == "" || len(a.Issuer) > maxIssuer {
		return nil, fmt.Errorf("%s has no token endpoint, or a name of more than %d bytes", visible.Line(issuer, maxReason), maxIssuer)
	}
	return a, nil
}

// metadata is what the skill server says of itself, at the place that its refusal names or at the
// known ones; nil: nothing.
func (s *server) metadata(ctx context.Context, origin string) *oauthex.ProtectedResourceMetadata {
	const known = "/.well-known/oauth-protected-resource"
	at, _ := url.Parse(s.URL) // it was parsed before
	places := []string{origin + known + strings.TrimSuffix(at.Path, "/"), origin + known}
	if named := s.challenge(ctx); named != "" {
		places = append([]string{named}, places...)
	}
	for _, place := range places {
		for _, resource := range []string{s.URL, origin, origin + "/"} {
			if m, err := oauthex.GetProtectedResourceMetadata(ctx, place, resource, s.http); err == nil {
				return m
			}
		}
	}
	return nil
}

// challenge is the address of the metadata in the refusal of a request without a token.
func (s *server) challenge(ctx context.Context) string {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL, nil)
	if err != nil {
		return ""
	}
	req.Header.Set("Accept", "text/event-stream")
	resp, err := s.http.Do(req)
	if err != nil {
		return ""
	}
	_ = resp.Body.Close()
	challenges, err := oauthex.ParseWWWAuthenticate(resp.Header.Values("WWW-Authenticate"))
	if err != nil || resp.StatusCode != http.StatusUnauthorized {
		return ""
	}
	for _, c := range challenges {
		if at := c.Params["resource_metadata"]; c.Scheme == "bearer" && at != "" {
			return at
		}
	}
	return ""
}

// client is writ as an authorization server knows it.
type client struct {
	ID     string           `json:"id"`
	Secret string           `json:"secret,omitempty"`
	Style  oauth2.AuthStyle `json:"style"`
}

// style is how a client with a secret proves itself.
func (a *authority) style() oauth2.AuthStyle {
	for _, m := range a.TokenEndpointAuthMethodsSupported {
		if m == "client_secret_post" {
			return oauth2.AuthStyleInParams
		}
	}
	return oauth2.AuthStyleInHeader
}

// client is the operator's, or a new one that is registered for one redirect URI (RFC 7591).
func (s *server) client(ctx context.Context, a *authority, redirect string) (client, error) {
	if id := s.OAuth.ClientID; id != "" {
		style := oauth2.AuthStyleInParams
		if s.OAuth.Secret() != "" {
			style = a.style()
		}
		return client{id, s.OAuth.Secret(), style}, nil
	}
	if a.RegistrationEndpoint == "" {
		return client{}, errors.New("it registers no clients by itself: register writ there with this redirect URI, and write client_id and client_secret: " + redirect)
	}
	m := &oauthex.ClientRegistrationMetadata{
		RedirectURIs: []string{redirect}, ClientName: "writ", TokenEndpointAuthMethod: "none",
		GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"}, Scope: strings.Join(a.Scopes, " "),
	}
	got, err := oauthex.RegisterClient(ctx, a.RegistrationEndpoint, m, s.http)
	var refused *oauthex.ClientRegistrationError
	switch {
	case errors.As(err, &refused):
		return client{}, errors.New("it does not register writ: " + visible.Line(refused.ErrorCode, maxReason))
	case err != nil:
		return client{}, errors.New("it does not register writ: it answers neither with a client nor with an error of RFC 7591")
	}
	out := client{got.ClientID, got.ClientSecret, oauth2.AuthStyleInParams}
	if got.TokenEndpointAuthMethod == "client_secret_basic" || got.TokenEndpointAuthMethod == "" && got.ClientSecret != "" {
		out.Style = oauth2.AuthStyleInHeader
	}
	return out, nil
}
