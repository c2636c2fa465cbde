package openid

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"aob.dev/writ/internal/egress"
)

// SignIn is a sign-in that has begun: what its browser keeps until the provider sends it back. It opens
// nothing by itself.
type SignIn struct {
	Issuer   string `json:"issuer"`
	State    string `json:"state"`
	Nonce    string `json:"nonce"`
	Verifier string `json:"verifier"` // of PKCE (RFC 7636)
	Next     string `json:"next"`     // where the person wanted to go
}

// At is where people can sign in.
type At struct {
	Issuer   string   `json:"issuer"`
	ClientID string   `json:"client_id"`
	Scopes   []string `json:"scopes"`
}

// SignInAt lists where people can sign in.
func (p *Providers) SignInAt() (list []At) {
	for _, x := range p.list() {
		if x.Client.ID != "" {
			list = append(list, At{x.Issuer, x.Client.ID, x.Client.Scopes})
		}
	}
	return list
}

// Begin begins a sign-in: the browser goes to the address, and comes back to redirect.
// The access token will be for resource (RFC 8707).
func (p *Providers) Begin(ctx context.Context, issuer, redirect, resource, then string) (s SignIn, address string, err error) {
	x, c, err := p.client(ctx, issuer)
	if err != nil {
		return s, "", err
	}
	c.RedirectURL = redirect
	s = SignIn{Issuer: x.Issuer, State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(), Next: then}
	return s, c.AuthCodeURL(s.State, oauth2.S256ChallengeOption(s.Verifier), oidc.Nonce(s.Nonce), oauth2.SetAuthURLParam("resource", resource)), nil
}

// errNotAgreed: the provider or the person has not agreed.
var errNotAgreed = errors.New("openid: the provider has not signed the person in")

// Finish takes the answer that a browser came back with. The answer must be the one to this sign-in,
// from this issuer, and the ID token that comes with it must be for it, too.
func (p *Providers) Finish(ctx context.Context, s SignIn, answer url.Values, redirect, resource string) (*Session, error) {
	x, c, err := p.client(ctx, s.Issuer)
	if err != nil {
		return nil, err
	}
	found, err := x.discover(ctx, p.now())
	if err != nil {
		return nil, ErrUnavailable
	}
	if answer.Get("error") != "" {
		return nil, fmt.Errorf("%w: %.100q", errNotAgreed, answer.Get("error"))
	}
	if s.State == "" || subtle.ConstantTimeCompare([]byte(s.State), []byte(answer.Get("state"))) != 1 {
		return nil, errors.New("openid: the answer is not to this sign-in: sign in again")
	}
	if iss := answer.Get("iss"); iss != "" && iss != x.Issuer { // RFC 9207
		return nil, errors.New("openid: the answer is from another provider")
	}
	c.RedirectURL = redirect
	token, err := c.Exchange(x.web(ctx), answer.Get("code"), oauth2.VerifierOption(s.Verifier), oauth2.SetAuthURLParam("resource", resource))
	if err != nil {
		return nil, fmt.Errorf("%w: it refuses the code", errNotAgreed)
	}
	raw, _ := token.Extra("id_token").(string)
	id, err := found.Verifier(&oidc.Config{ClientID: c.ClientID, SupportedSigningAlgs: algorithms, Now: p.now}).Verify(x.web(ctx), raw)
	if err != nil || subtle.ConstantTimeCompare([]byte(id.Nonce), []byte(s.Nonce)) != 1 {
		return nil, errors.New("openid: the ID token is not for this sign-in")
	}
	_, u, err := p.AccessToken(ctx, token.AccessToken, resource)
	if err != nil {
		return nil, err
	}
	if u.Subject != id.Subject {
		return nil, errors.New("openid: the two tokens are of different people")
	}
	return &Session{of: p, Issuer: x.Issuer, User: u, Resource: resource, token: token}, nil
}

// Session is a person who is signed in. Safe for concurrent use.
type Session struct {
	Issuer   string
	User     User
	Resource string

	of    *Providers
	mu    sync.Mutex // guards token; held while it is refreshed
	token *oauth2.Token
}

// refreshBefore is how long before its end an access token is renewed.
const refreshBefore = 30 * time.Second

// AccessToken returns one that is in force, and renews it if the provider lets it. A provider that
// refuses has ended the session.
func (s *Session) AccessToken(ctx context.Context) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	token, err := s.of.refresh(ctx, s.Issuer, s.Resource, s.token)
	if err != nil {
		return "", err
	}
	s.token = token
	return token.AccessToken, nil
}

// ErrEnded means that the provider has ended a sign-in.
var ErrEnded = errors.New("openid: the sign-in is over")

func (p *Providers) refresh(ctx context.Context, issuer, resource string, token *oauth2.Token) (*oauth2.Token, error) {
	if token.Expiry.IsZero() || p.now().Before(token.Expiry.Add(-refreshBefore)) {
		return token, nil
	}
	x, c, err := p.client(ctx, issuer)
	if err != nil {
		return nil, err
	}
	// A page that is closed meanwhile must not lose the next refresh token: the old one is used up.
	return renew(x.web(context.WithoutCancel(ctx)), c, resource, token)
}

// renew trades a refresh token (RFC 6749, section 6).
func renew(ctx context.Context, c oauth2.Config, resource string, token *oauth2.Token) (*oauth2.Token, error) {
	if token.RefreshToken == "" {
		return nil, ErrEnded
	}
	// oauth2 sends no resource with a refresh, which providers need that issue several audiences.
	fresh, err := c.Exchange(ctx, "", oauth2.SetAuthURLParam("grant_type", "refresh_token"), oauth2.SetAuthURLParam("refresh_token", token.RefreshToken), oauth2.SetAuthURLParam("resource", resource))
	var refused *oauth2.RetrieveError
	switch {
	case errors.As(err, &refused) && refused.Response.StatusCode < http.StatusInternalServerError && refused.Response.StatusCode != http.StatusTooManyRequests:
		return nil, ErrEnded
	case err != nil:
		return nil, ErrUnavailable
	}
	if fresh.RefreshToken == "" {
		fresh.RefreshToken = token.RefreshToken
	}
	return fresh, nil
}

// client is writ as a provider knows it.
func (p *Providers) client(ctx context.Context, issuer string) (*provider, oauth2.Config, error) {
	x := p.named(issuer)
	if x == nil || x.Client.ID == "" {
		return nil, oauth2.Config{}, errors.New("openid: nobody signs in at this provider")
	}
	found, err := x.discover(ctx, p.now())
	if err != nil {
		return nil, oauth2.Config{}, ErrUnavailable
	}
	c := oauth2.Config{ClientID: x.Client.ID, ClientSecret: x.Client.Secret, Endpoint: found.Endpoint(), Scopes: x.Client.Scopes}
	var takes struct {
		Methods []string `json:"token_endpoint_auth_methods_supported"`
	}
	if err := found.Claims(&takes); err != nil {
		return nil, c, err
	}
	c.Endpoint.AuthStyle = oauth2.AuthStyleInHeader // what counts where it does not say (OpenID Connect Core, section 9)
	if c.ClientSecret == "" || len(takes.Methods) > 0 && !slices.Contains(takes.Methods, "client_secret_basic") {
		c.Endpoint.AuthStyle = oauth2.AuthStyleInParams
	}
	return x, c, nil
}

// web goes out by the door to the provider alone.
func (x *provider) web(ctx context.Context) context.Context {
	web := egress.Client(egress.Transport(x.Issuer))
	web.Timeout = requestTime
	return context.WithValue(ctx, oauth2.HTTPClient, web)
}
