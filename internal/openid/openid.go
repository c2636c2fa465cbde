// Package openid knows people by the OpenID providers that the operator has named: who proves to be a
// subject of an issuer is the user that the settings map to it. No e-mail address and no other claim
// says who somebody is. Claims may give roles.
package openid

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"aob.dev/writ/internal/egress"
)

// Provider is an OpenID provider and its people.
type Provider struct {
	Issuer string
	Users  []User
	Roles  []ClaimRole // beside those of the users
	// Client is writ as the provider knows it, where people sign in to the console or with the command
	// line; the zero value: they do not.
	Client Client
}

// ClaimRole is a role of the users whose access token has a value in a claim: a text, or one of a list.
// A claim that begins with a slash is a JSON Pointer.
type ClaimRole struct{ Claim, Value, Role string }

// Client of a provider.
type Client struct {
	ID, Secret string // Secret is empty for a public client
	Scopes     []string
}

// User is the user that a subject is.
type User struct {
	Subject, Tenant, User string
	Roles                 []string // the most that it may have
}

// Providers verify what the named providers have signed. Safe for concurrent use.
type Providers struct {
	now func() time.Time
	log *slog.Logger

	mu  sync.Mutex // guards all, whose entries are never changed
	all []*provider
}

type provider struct {
	Provider
	*metadata
}

// metadata of a provider.
type metadata struct {
	mu    sync.Mutex // guards what follows
	found *oidc.Provider
	read  time.Time
}

// metadataLife is how long metadata is used before it is read again.
const metadataLife = time.Hour

// ErrUnknown is a valid token of somebody who is no user.
var ErrUnknown = errors.New("openid: no user is mapped to the subject")

// ErrUnavailable means that the provider does not answer.
var ErrUnavailable = errors.New("the issuer of the access token does not answer")

// algorithms of signatures: those of public keys, since a shared secret would let its other holders
// sign.
var algorithms = []string{
	oidc.RS256, oidc.RS384, oidc.RS512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.EdDSA,
}

// requestTime bounds one request to a provider.
const requestTime = 10 * time.Second

// New verifies tokens of providers. It asks them nothing before the first token.
func New(list []Provider, now func() time.Time, log *slog.Logger) *Providers {
	p := &Providers{now: now, log: log}
	p.Replace(list)
	return p
}

// Replace puts other providers and people in the place of those that were. People who are signed in stay so
// while they are still mapped.
func (p *Providers) Replace(list []Provider) {
	var all []*provider
	for _, x := range list {
		known := new(metadata)
		if before := p.named(x.Issuer); before != nil {
			known = before.metadata
		}
		all = append(all, &provider{x, known})
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = all
}

// list returns the providers now; none of nil.
func (p *Providers) list() []*provider {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all
}

// Issuers of the providers.
func (p *Providers) Issuers() (list []string) {
	for _, x := range p.list() {
		list = append(list, x.Issuer)
	}
	return list
}

// AccessToken returns whose access token a JWT is, with the issuer. The audience must be among the
// token's.
func (p *Providers) AccessToken(ctx context.Context, token, audience string) (issuer string, u User, err error) {
	var header struct{ Typ string }
	parts := strings.Split(token, ".")
	claimed, ok := issuerOf(parts)
	if !ok || decode(parts[0], &header) != nil {
		return "", u, errors.New("it is no signed JWT")
	}
	of := p.named(claimed)
	if of == nil {
		return "", u, errors.New("its issuer is none that the operator has named")
	}
	found, err := of.discover(ctx, p.now())
	if err != nil {
		p.log.WarnContext(ctx, "an OpenID provider does not answer", slog.String("issuer", claimed), slog.String("error", err.Error()))
		return "", u, ErrUnavailable
	}
	verified, err := found.Verifier(&oidc.Config{ClientID: audience, SupportedSigningAlgs: algorithms, Now: p.now}).Verify(ctx, token)
	if err != nil {
		return "", u, fmt.Errorf("%s", strings.ReplaceAll(strings.TrimPrefix(err.Error(), "oidc: "), "id token", "token"))
	}
	if err := isAccess(header.Typ, verified); err != nil {
		return "", u, err
	}
	for _, u := range of.Users {
		if u.Subject == verified.Subject {
			u.Roles, err = of.rolesOf(u, verified)
			return verified.Issuer, u, err
		}
	}
	p.log.WarnContext(ctx, "a token is valid, and no user is mapped to its subject", slog.String("issuer", verified.Issuer), slog.String("sub", verified.Subject))
	return "", u, ErrUnknown
}

// rolesOf are the roles of a user with those that the claims of a token give.
func (x *provider) rolesOf(u User, token *oidc.IDToken) ([]string, error) {
	if len(x.Roles) == 0 {
		return u.Roles, nil
	}
	var claims map[string]any
	if err := token.Claims(&claims); err != nil {
		return nil, err
	}
	roles := slices.Clone(u.Roles)
	for _, r := range x.Roles {
		path := []string{r.Claim}
		if pointer, ok := strings.CutPrefix(r.Claim, "/"); ok {
			path = strings.Split(pointer, "/")
			for i, name := range path {
				path[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
			}
		}
		var value any = claims
		for _, name := range path {
			members, _ := value.(map[string]any)
			value = members[name]
		}
		list, _ := value.([]any)
		if (value == r.Value || slices.Contains(list, any(r.Value))) && !slices.Contains(roles, r.Role) {
			roles = append(roles, r.Role)
		}
	}
	return roles, nil
}

// issuerOf is the issuer that a JWT claims.
func issuerOf(parts []string) (string, bool) {
	var claims struct {
		Issuer string `json:"iss"`
	}
	ok := len(parts) == 3 && decode(parts[1], &claims) == nil
	return claims.Issuer, ok
}

// named returns the provider of an issuer; nil: there is none.
func (p *Providers) named(issuer string) *provider {
	for _, x := range p.list() {
		if x.Issuer == issuer {
			return x
		}
	}
	return nil
}

// Names reports whether a token claims to be of one of the providers. Nothing of it is verified.
func (p *Providers) Names(token string) bool {
	issuer, ok := issuerOf(strings.Split(token, "."))
	return ok && p.named(issuer) != nil
}

// isAccess refuses ID tokens and the like. An access token says so by its type (RFC 9068). Providers
// that write an older form, such as Keycloak and Auth0 by default, type it JWT: then it must have a
// scope, and nothing that only ID tokens have.
func isAccess(typ string, t *oidc.IDToken) error {
	switch strings.TrimPrefix(strings.ToLower(typ), "application/") {
	case "at+jwt":
		return nil
	case "", "jwt":
	default:
		return errors.New("its type is not that of an access token")
	}
	var claims struct {
		Typ        string
		Scope, Scp any
		Nonce      any
		AtHash     any `json:"at_hash"`
		CodeHash   any `json:"c_hash"`
		Events     any
	}
	if err := t.Claims(&claims); err != nil {
		return err
	}
	if claims.Typ != "" && claims.Typ != "Bearer" || claims.Nonce != nil || claims.AtHash != nil || claims.CodeHash != nil || claims.Events != nil || claims.Scope == nil && claims.Scp == nil {
		return errors.New("it is not an access token: an ID token opens nothing")
	}
	return nil
}

// discover reads the provider's metadata, if it has not done so lately. While the provider does not
// answer, what it said before counts.
func (x *provider) discover(ctx context.Context, now time.Time) (*oidc.Provider, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.found != nil && now.Sub(x.read).Abs() < metadataLife {
		return x.found, nil
	}
	web := egress.Client(egress.Transport(x.Issuer))
	web.Timeout = requestTime
	found, err := oidc.NewProvider(oidc.ClientContext(context.WithoutCancel(ctx), web), x.Issuer)
	switch {
	case err == nil:
		x.found = found
	case x.found == nil:
		return nil, err
	}
	x.read = now
	return x.found, nil
}

func decode(part string, into any) error {
	raw, err := base64.RawURLEncoding.DecodeString(part)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, into)
}
