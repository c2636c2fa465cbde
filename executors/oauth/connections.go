// Package oauth gets the OAuth tokens that requests to skill servers need: of writ's own client,
// or of each user, who connects once. It is part of the executor of skills.
//
// Tokens of users are documents, sealed with a key outside of the store and bound to tenant, user,
// server and issuer. They are in no record, log or error.
package oauth

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"aob.dev/writ/executors/mcp"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/egress"
	"aob.dev/writ/internal/sealed"
	"aob.dev/writ/storage"
)

// Config of the connections of a process.
type Config struct {
	Documents storage.Documents
	Secret    []byte   // from which the keys are derived, shared with gateways
	Hosts     []string // in private networks, at which authorization servers may be
	Base      func() string
	// Changed is told when a user has connected, or has disconnected.
	Changed func(who intents.Principal, server string, connected bool)
	Now     func() time.Time
	Log     *slog.Logger
}

// Connections are the tokens for skill servers.
type Connections struct {
	Config
	tokens, links sealed.Box

	mu      sync.Mutex
	servers map[string]*server
}

const tokenUse = "writ connection tokens v1\n"

// New makes the connections, of no server yet.
func New(cfg Config) (*Connections, error) {
	c := &Connections{Config: cfg, servers: map[string]*server{}}
	var err error
	if c.tokens, err = sealed.NewBox(cfg.Secret, tokenUse); err != nil {
		return nil, err
	}
	c.links, err = sealed.NewBox(cfg.Secret, catalog.LinkUse)
	return c, err
}

// server is a skill server that needs tokens.
type server struct {
	mcp.Source
	http *http.Client

	mu    sync.Mutex // guards the fields below
	found *authority
	at    time.Time // of found
	own   held      // token of writ's own client
}

// Add adds a server under a name.
func (c *Connections) Add(name string, source mcp.Source) {
	c.mu.Lock()
	defer c.mu.Unlock()
	door := egress.Transport(append([]string{source.URL, source.OAuth.Issuer}, c.Hosts...)...)
	c.servers[name] = &server{Source: source, http: egress.Client(door)}
}

func (c *Connections) server(name string) *server {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.servers[name]
}

// Access is how a client reaches a server.
type Access struct {
	Issuer       string // of the tokens
	RoundTripper http.RoundTripper
	Hide         func(string) string // removes the tokens from a text
}

// Open prepares the access of a user to a server. A user who must connect first, or again, gets
// mcp.ErrUnconnected with a link.
func (c *Connections) Open(ctx context.Context, name string, who intents.Principal) (Access, error) {
	s := c.server(name)
	a, err := c.authority(ctx, s, false)
	if err != nil {
		return Access{}, err
	}
	b := &bearer{next: egress.Transport(s.URL)}
	switch s.OAuth.Mode {
	case mcp.AuthClient:
		b.token = func(ctx context.Context, spent string) (string, error) { return c.ownToken(ctx, s, spent) }
	case mcp.AuthUser:
		b.token = func(ctx context.Context, spent string) (string, error) {
			return c.userToken(ctx, name, s, a.Issuer, who, spent)
		}
	default:
		b.token = c.exchanged(name, s, a, who)
	}
	if s.OAuth.PerUser() { // before a connection is made in vain
		if _, err := b.token(ctx, ""); err != nil {
			return Access{}, err
		}
	}
	return Access{a.Issuer, b, b.hide}, nil
}

// unconnected is the refusal of a call for a user who has to connect first.
func (c *Connections) unconnected(name string, who intents.Principal, why string) error {
	e := &mcp.Error{Kind: mcp.ErrUnconnected, Undelivered: true, Barred: true}
	how := "run writ skill connect " + name
	if base := c.Base(); base != "" {
		token, err := c.links.Seal(catalog.ConnectLink{Tenant: who.Tenant, User: who.UserID, Server: name, Nonce: rand.Text(), Until: c.Now().Add(catalog.ConnectLife)}, catalog.SealedLink)
		if err != nil {
			return err
		}
		e.Link = base + catalog.ConnectPage + token
		how = "open this link within ten minutes, signed in as " + who.UserID + ", or " + how + ": " + e.Link
	}
	e.Reason = fmt.Sprintf("%s: %s", why, how)
	return e
}
