package oauth

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"aob.dev/writ/executors/mcp"
	"aob.dev/writ/intents"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/visible"
	"aob.dev/writ/storage"
)

// bare is a context without values: what observes a request to a skill server does not see those for
// its token.
type bare struct{ context.Context }

func (bare) Value(any) any { return nil }

// tokenTime bounds a request to a token endpoint.
const tokenTime = 20 * time.Second

func withDoor(ctx context.Context, door *http.Client) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithValue(bare{ctx}, oauth2.HTTPClient, door), tokenTime)
}

// grant asks a token endpoint for tokens, with parameters of a grant.
func (p place) grant(ctx context.Context, door *http.Client, params map[string]string) (*oauth2.Token, error) {
	ctx, cancel := withDoor(ctx, door)
	defer cancel()
	cfg := oauth2.Config{ClientID: p.Client.ID, ClientSecret: p.Client.Secret, Endpoint: oauth2.Endpoint{TokenURL: p.Token, AuthStyle: p.Client.Style}}
	var opts []oauth2.AuthCodeOption
	for name, value := range params {
		opts = append(opts, oauth2.SetAuthURLParam(name, value))
	}
	if p.Resource != "" { // RFC 8707
		opts = append(opts, oauth2.SetAuthURLParam("resource", p.Resource))
	}
	t, err := cfg.Exchange(ctx, params["code"], opts...)
	if err == nil && !strings.EqualFold(t.Type(), "Bearer") {
		return nil, &mcp.Error{Kind: mcp.ErrRefused, Reason: "its authorization server issues no bearer tokens", Undelivered: true, Barred: true}
	}
	return t, err
}

// page is where the person answers, without the state, which the gateway adds.
func (p *pending) page(endpoint string) string {
	cfg := oauth2.Config{ClientID: p.Client.ID, Endpoint: oauth2.Endpoint{AuthURL: endpoint}, RedirectURL: p.Redirect, Scopes: p.Scopes}
	opts := []oauth2.AuthCodeOption{oauth2.S256ChallengeOption(p.Verifier)}
	if p.Resource != "" {
		opts = append(opts, oauth2.SetAuthURLParam("resource", p.Resource))
	}
	return cfg.AuthCodeURL("", opts...)
}

// refused reports what an authorization server answers in place of tokens; empty: it has not answered so,
// or may answer otherwise later.
func refused(err error) string {
	var r *oauth2.RetrieveError
	if !errors.As(err, &r) || later(r) {
		return ""
	}
	return cmp.Or(visible.Line(r.ErrorCode, maxReason), "HTTP "+r.Response.Status)
}

// later reports that an answer says nothing about the request.
func later(r *oauth2.RetrieveError) bool {
	switch r.ErrorCode {
	case "":
		return r.Response.StatusCode >= http.StatusInternalServerError || r.Response.StatusCode == http.StatusTooManyRequests
	case "server_error", "temporarily_unavailable", "slow_down":
		return true
	}
	return false
}

// tokenError is the error of a request for tokens. The body of the answer is not in it.
func tokenError(err error) error {
	var own *mcp.Error
	var answer *oauth2.RetrieveError
	switch code := refused(err); {
	case errors.As(err, &own):
		return err
	case code == "" && errors.As(err, &answer):
		return &mcp.Error{Kind: mcp.ErrUnavailable, Reason: "its authorization server gives no token: HTTP " + answer.Response.Status, Undelivered: true}
	case code != "":
		return &mcp.Error{Kind: mcp.ErrRefused, Reason: "its authorization server refuses a token: " + code, Undelivered: true, Barred: true}
	}
	return unreachable("its authorization server gives no token", err)
}

// ownToken is the token of writ's own client.
func (c *Connections) ownToken(ctx context.Context, s *server, spent string) (string, error) {
	a, err := c.authority(bare{ctx}, s, spent != "") //nolint:contextcheck // it ends with ctx
	if err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.own.good(c.Now(), spent) {
		return s.own.token, nil
	}
	cfg := clientcredentials.Config{
		ClientID: s.OAuth.ClientID, ClientSecret: s.OAuth.Secret(), TokenURL: a.TokenEndpoint, Scopes: a.Scopes,
		EndpointParams: url.Values{"resource": {a.Resource}}, AuthStyle: a.style(),
	}
	ctx, cancel := withDoor(ctx, s.http)
	defer cancel()
	t, err := cfg.Token(ctx)
	if err != nil {
		return "", tokenError(err)
	}
	s.own = c.held(t)
	return t.AccessToken, nil
}

// A claim to refresh lapses if its process dies. Others look whether it is done.
const (
	claimTime = 30 * time.Second
	claimLook = 200 * time.Millisecond
)

// userToken is the token of a user. One process of a cell refreshes it, which claims that first.
//
// Crash: before the new tokens are stored, the next process refreshes with the old ones after claimTime. If
// the authorization server takes each only once, the user must connect again.
func (c *Connections) userToken(ctx context.Context, name string, s *server, issuer string, who intents.Principal, spent string) (string, error) {
	for refreshed := false; ; {
		x, err := c.load(ctx, who, name)
		if err != nil {
			return "", storeError(err)
		}
		t := x.Tokens
		switch {
		case t == nil:
			return "", c.unconnected(name, who, "you are not connected to "+name)
		case t.Issuer != issuer:
			return "", c.unconnected(name, who, "you are connected to "+name+" by "+visible.Line(t.Issuer, maxReason)+", and it names "+visible.Line(issuer, maxReason)+" now")
		case strings.HasPrefix(who.Session, scheduled) && !t.Absent:
			return "", c.unconnected(name, who, "you have not allowed "+name+" for schedules: connect again, and allow it")
		case held{t.Access, t.Expiry}.good(c.Now(), spent), refreshed && t.Access != "":
			return t.Access, nil // however soon a new one ends
		case t.Refresh == "":
			return "", c.unconnected(name, who, "you were connected to "+name+", and that has ended")
		case x.Refreshing != nil && c.Now().Before(*x.Refreshing):
			if err := clock.Sleep(ctx, claimLook); err != nil {
				return "", err
			}
			continue
		}
		until := c.Now().Add(claimTime).UTC()
		x.Refreshing = &until
		err = c.save(ctx, x, 0)
		if err == nil {
			err, refreshed = c.refresh(context.WithoutCancel(ctx), s, x), true
		}
		if code := refused(err); code != "" {
			return "", c.unconnected(name, who, "your connection to "+name+" is not renewed by its authorization server ("+code+")")
		}
		if err != nil && !errors.Is(err, storage.ErrStale) {
			return "", tokenError(err)
		}
	}
}

// scheduled begins the sessions of schedules.
const scheduled = "sched_"

// over are the refusals of a refresh token that has ended, the second by GitHub.
var over = []string{"invalid_grant", "bad_refresh_token"}

// refresh renews the tokens of a connection and stores the new ones. Tokens that are refused are removed.
func (c *Connections) refresh(ctx context.Context, s *server, x *connection) error {
	t := x.Tokens
	got, err := t.grant(ctx, s.http, map[string]string{"grant_type": "refresh_token", "refresh_token": t.Refresh})
	x.Refreshing = nil
	switch {
	case err == nil:
		now := c.held(got)
		t.Access, t.Expiry, t.Refresh = now.token, now.until, cmp.Or(got.RefreshToken, t.Refresh)
	case slices.Contains(over, refused(err)):
		t.Access, t.Refresh = "", ""
		err = nil
	}
	return errors.Join(err, c.save(ctx, x, 0))
}

func storeError(err error) error {
	return &mcp.Error{Kind: mcp.ErrUnavailable, Reason: "the store of connections does not answer", Undelivered: true, Barred: true, Err: err}
}

const accessToken = "urn:ietf:params:oauth:token-type:access_token" //nolint:gosec // G101: a type

// exchanged exchanges the user's token of the issuer for one of the server (RFC 8693), and keeps it in memory.
func (c *Connections) exchanged(name string, s *server, a *authority, who intents.Principal) func(context.Context, string) (string, error) {
	var mu sync.Mutex
	var now held
	return func(ctx context.Context, spent string) (string, error) {
		subject, err := c.userToken(ctx, name, s, a.Issuer, who, "")
		if err != nil {
			return "", err
		}
		mu.Lock()
		defer mu.Unlock()
		if now.good(c.Now(), spent) {
			return now.token, nil
		}
		creds := &oauthex.ClientCredentials{ClientID: s.OAuth.ClientID}
		if s.OAuth.Secret() != "" {
			creds.ClientSecretAuth = &oauthex.ClientSecretAuth{ClientSecret: s.OAuth.Secret()}
		}
		ctx, cancel := context.WithTimeout(bare{ctx}, tokenTime)
		defer cancel()
		t, err := oauthex.ExchangeToken(ctx, a.TokenEndpoint, &oauthex.TokenExchangeRequest{ //nolint:contextcheck // it ends with ctx
			RequestedTokenType: accessToken, Audience: a.Resource, Resource: a.Resource, Scope: a.Scopes, SubjectToken: subject, SubjectTokenType: accessToken,
		}, creds, s.http)
		if err != nil {
			return "", tokenError(err)
		}
		now = c.held(t)
		return now.token, nil
	}
}
