package mcp

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
)

// How a server is authorized, as the member auth says.
const (
	AuthNone    = "none"
	AuthHeaders = "headers"
	// AuthClient: writ has one token, of its own client.
	AuthClient = "client_credentials"
	// AuthUser: each user connects once, and calls have that user's token.
	AuthUser = "user"
	// AuthExchange: each user connects once to the issuer, whose token is exchanged for one of the server.
	AuthExchange = "exchange"
)

// OAuth is how requests to a server get their tokens.
type OAuth struct {
	Mode         string // AuthClient, AuthUser or AuthExchange; empty: no OAuth
	Issuer       string // of the tokens; empty: the server names it
	ClientID     string // registered by the operator; empty: writ registers a client for each connection
	ClientSecret string
	SecretFile   *SecretFile // that has the client's secret; nil: none
	Scopes       []string    // to ask for; none: those that the server names
}

// PerUser reports whether each user has tokens of their own.
func (o OAuth) PerUser() bool { return o.Mode == AuthUser || o.Mode == AuthExchange }

func (s *entry) setAuth(text string) error {
	modes := []string{AuthNone, AuthHeaders, AuthClient, AuthUser, AuthExchange}
	if !slices.Contains(modes, text) {
		return fmt.Errorf("must be one of %v", modes)
	}
	s.OAuth.Mode = text
	return nil
}

func (s *entry) setClientSecret(text string) error {
	s.OAuth.ClientSecret = text
	s.Secrets = append(s.Secrets, text)
	return nil
}

// checkAuth checks that the members fit auth.
func (s *entry) checkAuth() error {
	o := &s.OAuth
	oauth := slices.Contains([]string{AuthClient, AuthUser, AuthExchange}, o.Mode)
	switch {
	case o.Mode == AuthHeaders && s.Header == nil:
		return errors.New(".auth: is headers, and there are none: add headers")
	case (o.Mode == AuthNone || oauth) && s.Header["Authorization"] != nil:
		return fmt.Errorf(".auth: is %s, and headers has Authorization: leave one of them out", o.Mode)
	case !oauth && (o.Issuer != "" || o.ClientID != "" || o.ClientSecret != "" || o.Scopes != nil):
		return errors.New(".auth: issuer, client_id, client_secret and scopes need auth: client_credentials, user or exchange")
	case o.Mode == AuthClient && (o.ClientID == "" || o.ClientSecret == ""):
		return errors.New(".auth: client_credentials needs client_id and client_secret")
	case o.Mode == AuthExchange && o.Issuer == "":
		return errors.New(".auth: exchange needs the issuer that users connect to")
	case o.ClientSecret != "" && o.ClientID == "":
		return errors.New(".client_secret: needs client_id")
	case oauth && !Private(s.URL):
		return errors.New(".url: tokens are sent by https alone, or to this machine")
	case o.Issuer != "" && !Private(o.Issuer):
		return errors.New(".issuer: must be https, or on this machine")
	}
	switch {
	case !s.ForwardKey:
	case oauth:
		return errors.New(".forward_api_key: cannot be combined with auth: leave one of them out")
	case s.Header["X-Api-Key"] != nil:
		return errors.New(".forward_api_key: headers has X-Api-Key: leave one of them out")
	case !Private(s.URL):
		return errors.New(".url: callers' keys are sent by https alone, or to this machine")
	}
	if !oauth {
		o.Mode = ""
	}
	return nil
}

// Private reports whether nobody on the way can read what is sent to a URL.
func Private(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "https" || u.Hostname() == "localhost" || net.ParseIP(u.Hostname()).IsLoopback())
}
