package natsserver

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"sync"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"aob.dev/writ/bus"
)

// External is a third party's service with a key of its own (NATS nkey), of which the server
// knows the public key. It is an external executor, or reads events.
type External struct {
	Name  string   // of the executor (a user's service is called bus.ServiceName(name)), or of the reader
	NKey  string   // public
	Types []string // intent types that it executes; none: it reads events
}

// authority authenticates connections: our own processes by password, external executors by key.
// It runs at each connection, so that processes come and go without affecting other connections.
type authority struct {
	account func(name string) (*server.Account, error)

	mu       sync.RWMutex            // guards the rest
	users    map[string]*server.User // by name
	external map[string]*server.User // by public key
}

var _ server.Authentication = (*authority)(nil)

func newAuthority(account func(name string) (*server.Account, error)) *authority {
	return &authority{account: account, users: make(map[string]*server.User)}
}

// admit creates the credentials of a connection that has the given right.
func (a *authority) admit(name string, r *right) Credentials {
	c := Credentials{User: name, Password: rand.Text()}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.users[name] = r.user(name, c.Password)
	return c
}

// Check implements server.Authentication.
func (a *authority) Check(c server.ClientAuthentication) bool {
	o := c.GetOpts()
	known := a.known(o, c.GetNonce())
	if known == nil {
		return false
	}
	acc, err := a.account(known.Account.Name)
	if err != nil {
		return false
	}
	user := *known
	user.Account = acc
	c.RegisterUser(&user)
	// If its key was withdrawn in the meantime, there was no connection to end yet.
	now := a.known(o, c.GetNonce())
	return now == known || now != nil && sameSubjects(now, known)
}

func (a *authority) known(o *server.ClientOpts, nonce []byte) *server.User {
	if o.Nkey == "" {
		a.mu.RLock()
		u := a.users[o.Username]
		a.mu.RUnlock()
		if u == nil || u.Password == "" || subtle.ConstantTimeCompare([]byte(u.Password), []byte(o.Password)) != 1 {
			return nil
		}
		return u
	}
	a.mu.RLock()
	u := a.external[o.Nkey]
	a.mu.RUnlock()
	if u == nil || !signed(o.Nkey, o.Sig, nonce) {
		return nil
	}
	return u
}

// signed reports whether the connection has signed its nonce.
func signed(public, sig string, nonce []byte) bool {
	raw, err := base64.RawURLEncoding.DecodeString(sig)
	if err != nil { // the encoding of old clients
		raw, err = base64.StdEncoding.DecodeString(sig)
	}
	if err != nil || len(nonce) == 0 {
		return false
	}
	key, err := nkeys.FromPublicKey(public)
	return err == nil && key.Verify(nonce, raw) == nil
}

// SetExternal replaces the list of external executors that may connect. An executor that is no
// longer listed, or no longer for the same types, is disconnected. The error names those that
// cannot be admitted; all others are.
func (s *Server) SetExternal(list []External) error {
	next := make(map[string]*server.User, len(list))
	var wrong []error
	for _, o := range list {
		switch {
		case !nkeys.IsValidPublicUserKey(o.NKey):
			wrong = append(wrong, fmt.Errorf("nats server: external executor %s: not a public user key", o.Name))
		case len(o.Types) == 0 && hearer(o.Name, "") == nil:
			wrong = append(wrong, fmt.Errorf("nats server: %s: not the name of a reader of events", o.Name))
		case len(o.Types) > 0 && s.known(o.Name):
			wrong = append(wrong, fmt.Errorf("nats server: external executor %s: the name is that of a role of writ", o.Name))
		default:
			next[o.NKey] = external(o)
		}
	}
	s.auth.mu.Lock()
	before := s.auth.external
	s.auth.external = next
	s.auth.mu.Unlock()
	gone := make(map[string]bool)
	for key, u := range before {
		if n := next[key]; n == nil || !sameSubjects(n, u) {
			gone[key] = true
		}
	}
	return errors.Join(append(wrong, s.disconnect(gone))...)
}

func sameSubjects(a, b *server.User) bool {
	return a.Username == b.Username && fmt.Sprint(a.Permissions.Subscribe.Allow) == fmt.Sprint(b.Permissions.Subscribe.Allow)
}

// external returns the user of an external executor, with the rights of our own executors, or of
// a reader. All processes that have its key are one user, so the inbox is named after the
// executor.
func external(o External) *server.User {
	if len(o.Types) == 0 {
		user := bus.ProcessUser(Hearer, o.Name)
		return hearer(o.Name, inbox(user)).user(user, "")
	}
	return outside(o).user(o.Name, "")
}

func outside(o External) *right {
	r := executor(o.Name, "*", o.Types)
	r.subscribe = append(r.subscribe, inbox(o.Name))
	return r
}

// disconnect closes the connections of the given keys.
func (s *Server) disconnect(keys map[string]bool) error {
	if len(keys) == 0 {
		return nil
	}
	const page = 1024
	for offset := 0; ; offset += page {
		conns, err := s.ns.Connz(&server.ConnzOptions{Username: true, Limit: page, Offset: offset})
		if err != nil {
			return fmt.Errorf("nats server: %w", err)
		}
		for _, c := range conns.Conns {
			if keys[c.AuthorizedUser] {
				_ = s.ns.DisconnectClientByID(c.Cid) // fails only where it is gone already
			}
		}
		if len(conns.Conns) < page {
			return nil
		}
	}
}
