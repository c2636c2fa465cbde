// Package natsserver is a NATS server in this process: without any other installation it carries
// all messages of `writ up`, and it opens no socket unless asked to. Its accounts (accounts.go)
// and the rights of a process in them (rights.go) are those of a cluster.
//
// Each process is a user of its own, with an inbox of its own: two of one role share the role's
// queue group and nothing else. Passwords are random and valid as long as the server runs; only
// code that has the *Server can connect as a role. Services of third parties use the listener,
// each with a key of its own (SetExternal).
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
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"aob.dev/writ/bus"
)

// Options of a server.
type Options struct {
	Dir       string              // for JetStream; must exist
	Listen    string              // host:port of a listener; empty: none
	TLS       *tls.Config         // of the listener; nil: none
	Executors map[string][]string // names of executors with their intent types; a user's service is called bus.ServiceName(name)
	Log       *slog.Logger        // of connections made by Connect; nil: slog.Default
}

// maxPayload bounds a message: a dispatch with a large ticket, a plan with its events.
const maxPayload = 8 << 20

// startTimeout bounds the wait for the server to take connections.
const startTimeout = 10 * time.Second

// tlsTimeout bounds a handshake.
const tlsTimeout = 5 * time.Second

// Credentials of one connection.
type Credentials struct {
	User, Password string
}

// Process is one process of a role. It requests over one connection and serves over another; a
// role that does both in one account has one connection.
type Process struct {
	Instance     string
	Asks, Serves Credentials // zero if the role does not
}

// Server is a running server.
type Server struct {
	ns        *server.Server
	auth      *authority
	executors map[string][]string
	log       *slog.Logger
}

// Start runs a server until Close. It returns once the server takes connections
// and the stream of display frames is there.
func Start(ctx context.Context, o Options) (*Server, error) {
	s := &Server{executors: o.Executors, log: o.Log}
	opts, err := s.serverOptions(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("nats server: %w", err)
	}
	if err := s.begin(opts); err != nil {
		return nil, err
	}
	if err := s.ensureFrames(ctx); err != nil {
		s.Close()
		return nil, fmt.Errorf("nats server: %w", err)
	}
	return s, nil
}

// begin starts the server and returns once it accepts connections.
func (s *Server) begin(opts *server.Options) (err error) {
	if s.ns, err = server.NewServer(opts); err != nil {
		return fmt.Errorf("nats server: %w", err)
	}
	s.ns.Start()
	if !s.ns.ReadyForConnections(startTimeout) {
		s.Close()
		return errors.New("nats server: not ready in time")
	}
	return nil
}

func (s *Server) serverOptions(ctx context.Context, o Options) (*server.Options, error) {
	doc := struct {
		Accounts      map[string]*account `json:"accounts"`
		SystemAccount string              `json:"system_account"`
	}{accounts(), accountSystem}
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
	s.auth = newAuthority(func(name string) (*server.Account, error) { return s.ns.LookupAccount(name) })
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
		if strings.HasSuffix(o.Listen, ":0") {
			opts.Port = server.RANDOM_PORT // the port of addr may be in use by now
		}
	}
	return opts, nil
}

// freeAddr resolves an address and checks that it can be listened on; the server itself would
// only log the error. Port 0 becomes a port that was free.
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

func (s *Server) ensureFrames(ctx context.Context) error {
	c, err := s.Connect(ctx, Router)
	if err != nil {
		return err
	}
	defer c.Close()
	return bus.EnsureFrames(ctx, c)
}

// Admit creates the credentials of one more process of a role.
func (s *Server) Admit(role string) (Process, error) {
	p := Process{Instance: strings.ToLower(rand.Text())}
	asks, serves := rightsOf(role, p.Instance, s.executors)
	user := bus.ProcessUser(role, p.Instance)
	switch {
	case asks == nil && serves == nil:
		return p, fmt.Errorf("nats server: no role %q", role)
	case asks == serves:
		p.Asks = s.auth.admit(user, asks)
		p.Serves = p.Asks
		return p, nil
	}
	p.Asks = s.auth.admit(user, asks)
	if serves != nil {
		p.Serves = s.auth.admit(user+"_serves", serves)
	}
	return p, nil
}

// known reports whether name is a role.
func (s *Server) known(name string) bool {
	asks, serves := rightsOf(name, "", s.executors)
	return asks != nil || serves != nil
}

// Connect admits one more process of a role and connects it in process.
func (s *Server) Connect(ctx context.Context, role string) (bus.Conn, error) {
	p, err := s.Admit(role)
	if err != nil {
		return nil, err
	}
	asks, err := s.connect(ctx, p, p.Asks)
	if err != nil || p.Serves == p.Asks || p.Serves == (Credentials{}) {
		return asks, err
	}
	serves, err := s.connect(ctx, p, p.Serves)
	if err != nil {
		asks.Close()
		return nil, err
	}
	return bus.Join(asks, serves), nil
}

func (s *Server) connect(ctx context.Context, p Process, c Credentials) (bus.Conn, error) {
	return bus.Connect(ctx, bus.Options{InProcess: s, User: c.User, Password: c.Password, Instance: p.Instance, Log: s.log})
}

// URL returns the URL of the listener; empty without one.
func (s *Server) URL() string {
	if s.ns.Addr() == nil {
		return ""
	}
	return s.ns.ClientURL()
}

// InProcessConn connects without a socket; it implements bus.Options.InProcess.
func (s *Server) InProcessConn() (net.Conn, error) { return s.ns.InProcessConn() }

// Close stops the server. Close connections first.
func (s *Server) Close() {
	s.ns.Shutdown()
	s.ns.WaitForShutdown()
}
