// Package natsserver is a NATS server in this process: with nothing else
// installed it carries all messages of `writ up`, and it opens no socket unless
// asked to. Its accounts and users (accounts.go) are those of a cluster.
//
// Passwords are random and live as long as the server; whoever holds a *Server
// connects as any user, and nobody else as one. Services of others come by the
// listener, each with a key of its own (SetOutsiders).
package natsserver

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"aob.dev/writ/internal/bus"
)

// Options of a server.
type Options struct {
	Dir       string              // for JetStream; must exist
	Listen    string              // host:port of a listener; empty: none
	TLS       *tls.Config         // of the listener; nil: none
	Executors map[string][]string // the executors' names and their intent types; a user's service is called bus.ServiceName(name)
	Log       *slog.Logger        // of connections made by Connect; nil: slog.Default
}

// maxPayload bounds a message: a dispatch with a large ticket, a plan with its events.
const maxPayload = 8 << 20

// startTimeout bounds the wait for the server to take connections.
const startTimeout = 10 * time.Second

// tlsTimeout bounds a handshake.
const tlsTimeout = 5 * time.Second

// Credentials of one user.
type Credentials struct {
	User, Password string
}

// Server is a running server.
type Server struct {
	ns    *server.Server
	auth  *authority
	users map[string]Credentials
	log   *slog.Logger
}

var _ bus.InProcess = (*Server)(nil)

// Start runs a server until Close. It returns once the server takes connections
// and the stream of display frames is there.
func Start(ctx context.Context, o Options) (*Server, error) {
	s := &Server{users: make(map[string]Credentials), log: o.Log}
	opts, err := s.serverOptions(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("nats server: %w", err)
	}
	if s.ns, err = server.NewServer(opts); err != nil {
		return nil, fmt.Errorf("nats server: %w", err)
	}
	s.ns.Start()
	if !s.ns.ReadyForConnections(startTimeout) {
		s.Close()
		return nil, errors.New("nats server: not ready in time")
	}
	if err := s.ensureFrames(ctx); err != nil {
		s.Close()
		return nil, fmt.Errorf("nats server: %w", err)
	}
	return s, nil
}

func (s *Server) serverOptions(ctx context.Context, o Options) (*server.Options, error) {
	doc := struct {
		Accounts      map[string]account `json:"accounts"`
		SystemAccount string             `json:"system_account"`
	}{accounts(o.Executors, s.newPassword), accountSystem}
	var config bytes.Buffer
	enc := json.NewEncoder(&config)
	enc.SetEscapeHTML(false) // subjects hold ">"
	if err := enc.Encode(doc); err != nil {
		return nil, err
	}
	opts := &server.Options{
		ServerName: "writ", DontListen: o.Listen == "",
		JetStream: true, StoreDir: o.Dir, DisableJetStreamBanner: true,
		MaxPayload: maxPayload, NoLog: true, NoSigs: true,
	}
	if err := opts.ProcessConfigString(config.String()); err != nil {
		return nil, err
	}
	s.auth = &authority{users: make(map[string]*server.User), account: func(name string) (*server.Account, error) { return s.ns.LookupAccount(name) }}
	for _, u := range opts.Users {
		s.auth.users[u.Username] = closed(u)
	}
	opts.CustomClientAuthentication, opts.AlwaysEnableNonce = s.auth, true
	if o.TLS != nil {
		opts.TLS, opts.TLSConfig, opts.TLSTimeout = true, o.TLS, tlsTimeout.Seconds()
	}
	if o.Listen != "" {
		addr, err := freeAddr(ctx, o.Listen)
		if err != nil {
			return nil, err
		}
		opts.Host, opts.Port = addr.IP.String(), addr.Port
	}
	return opts, nil
}

// freeAddr resolves an address and checks that it can be listened on: the server
// itself would only log it. Port 0 becomes a free one.
func freeAddr(ctx context.Context, listen string) (*net.TCPAddr, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", listen)
	if err != nil {
		return nil, err
	}
	addr, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return nil, errors.Join(fmt.Errorf("listen on %q: not a TCP address", listen), l.Close())
	}
	return addr, l.Close()
}

// newPassword makes a user's credentials.
func (s *Server) newPassword(name string) string {
	s.users[name] = Credentials{User: name, Password: rand.Text()}
	return s.users[name].Password
}

func (s *Server) ensureFrames(ctx context.Context) error {
	c, err := s.Connect(ctx, Router)
	if err != nil {
		return err
	}
	defer c.Close()
	return bus.EnsureFrames(ctx, c)
}

// Connect opens a connection in process as a user.
func (s *Server) Connect(ctx context.Context, user string) (bus.Conn, error) {
	cred, ok := s.users[user]
	if !ok {
		return nil, fmt.Errorf("nats server: no user %q", user)
	}
	return bus.Connect(ctx, bus.Options{InProcess: s, User: cred.User, Password: cred.Password, Log: s.log})
}

// Users are the credentials of this start, by name.
func (s *Server) Users() map[string]Credentials { return s.users }

// URL of the listener; empty without one.
func (s *Server) URL() string {
	if s.ns.Addr() == nil {
		return ""
	}
	return s.ns.ClientURL()
}

// InProcessConn implements bus.InProcess.
func (s *Server) InProcessConn() (net.Conn, error) { return s.ns.InProcessConn() }

// Close ends the server. Connections are to be closed before.
func (s *Server) Close() {
	s.ns.Shutdown()
	s.ns.WaitForShutdown()
}
