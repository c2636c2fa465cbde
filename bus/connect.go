package bus

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"aob.dev/writ/internal/egress"
	"aob.dev/writ/internal/tracing"
)

// Options say where and as which user to connect. Set exactly one of URL and InProcess.
type Options struct {
	URL       string                     // nats://host:port, several separated by commas
	TLS       *tls.Config                // of the connection to URL; nil: none, unless the URL is tls://
	InProcess nats.InProcessConnProvider // a server of this process: no socket at all

	User     string // also names the inbox: InboxPrefix(User)
	Password string // of a user of the server in this process
	Seed     string // of the connection's key; empty: it has a password
	Instance string // of the process; empty: it cannot be addressed individually

	// Log receives errors that no call returns: lost connections and refused publishes. Nil:
	// slog.Default.
	Log *slog.Logger
}

// connectTime bounds the connection attempt to one server: a server on a suspended machine
// accepts connections and never responds.
const connectTime = 5 * time.Second

// pingEvery is the interval at which a server is pinged; after two unanswered pings another
// server is tried.
const pingEvery = 5 * time.Second

// drainTimeout is how long Close waits for messages on their way.
const drainTimeout = 5 * time.Second

// InboxPrefix returns the prefix of the subjects on which a user receives replies. No user may
// read another's.
func InboxPrefix(user string) string { return "_INBOX_" + user }

// conn implements Conn with nats.go.
type conn struct {
	nc       *nats.Conn
	frames   jetstream.JetStream // of readers of display frames
	instance string
	servers  int           // number of servers in Options
	closed   chan struct{} // closed when nc is gone for good
}

var _ Conn = (*conn)(nil)

// ours is a connection of this package alone, which has more than a Conn.
func ours(c Conn) (*conn, error) {
	of, ok := c.(*conn)
	if !ok {
		return nil, errors.New("bus: not a connection of this package")
	}
	return of, nil
}

// Connect opens a connection of one user. It reconnects whenever the connection is lost; requests
// wait for that until their ctx ends.
func Connect(ctx context.Context, o Options) (Conn, error) {
	if (o.URL == "") == (o.InProcess == nil) {
		return nil, errors.New("bus: connect needs exactly one of a URL and a server in process")
	}
	o.Log = cmp.Or(o.Log, slog.Default())
	c := &conn{instance: o.Instance, servers: strings.Count(o.URL, ",") + 1, closed: make(chan struct{})}
	opts, err := c.natsOptions(o)
	if err != nil {
		return nil, err
	}
	if deadline, ok := ctx.Deadline(); ok { // of each later connection, too
		opts = append(opts, nats.Timeout(min(time.Until(deadline), connectTime)))
	}
	nc, err := nats.Connect(o.URL, opts...)
	if err != nil {
		return nil, o.server().Fault(Plain(err))
	}
	c.nc = nc
	if c.frames, err = jetstream.NewWithAPIPrefix(nc, strings.TrimSuffix(FramesAPI, ".")); err != nil {
		nc.Close()
		return nil, fmt.Errorf("bus: %w", err)
	}
	return c, nil
}

// server describes the servers for error messages.
func (o Options) server() egress.Server {
	at := cmp.Or(o.URL, "in this process")
	return egress.Server{
		Name: "NATS at " + at + ", as " + o.User, Unaffected: "nothing was begun",
		Address: "bus (--bus)", Secret: "bus_keys (--bus-keys), which writ admin cell accounts makes", CA: "bus_ca (--bus-ca)", Try: "the same command again",
	}
}

func (c *conn) natsOptions(o Options) ([]nats.Option, error) {
	log := o.Log.With(slog.String("bus", o.User))
	opts := []nats.Option{
		nats.Name(o.User),
		nats.CustomInboxPrefix(InboxPrefix(o.User)),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(100 * time.Millisecond),
		nats.DrainTimeout(drainTimeout),
		nats.ClosedHandler(func(*nats.Conn) { close(c.closed) }),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				log.Warn("connection lost: what is asked waits until a server of bus is back, which is tried ten times a second", slog.String("error", Plain(err).Error()))
			}
		}),
		nats.ReconnectHandler(func(*nats.Conn) { log.Info("connected again") }),
		nats.ErrorHandler(func(_ *nats.Conn, sub *nats.Subscription, err error) {
			subject := ""
			if sub != nil {
				subject = sub.Subject
			}
			log.Error("message lost or refused", slog.String("subject", subject), slog.String("error", Plain(err).Error()))
		}),
	}
	if o.InProcess != nil {
		opts = append(opts, nats.InProcessServer(o.InProcess))
	} else {
		opts = append(opts, nats.PingInterval(pingEvery), nats.MaxPingsOutstanding(2))
	}
	if o.TLS != nil {
		opts = append(opts, nats.Secure(o.TLS))
	}
	if o.Seed == "" {
		return append(opts, nats.UserInfo(o.User, o.Password)), nil
	}
	public, err := PublicNKey(o.Seed)
	if err != nil {
		return nil, err
	}
	return append(opts, nats.Nkey(public, func(nonce []byte) ([]byte, error) { return signNonce(o.Seed, nonce) })), nil
}

func (c *conn) Request(ctx context.Context, subject string, data []byte) ([]byte, error) {
	m, err := c.nc.RequestMsgWithContext(ctx, message(ctx, subject, data))
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return nil, fmt.Errorf("%w on %s", ErrNoResponders, subject)
	case err != nil && ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, fmt.Errorf("bus: request %s: %w", subject, Plain(err))
	}
	return m.Data, nil
}

// message creates a message that carries the current trace context, if there is one.
func message(ctx context.Context, subject string, data []byte) *nats.Msg {
	m := &nats.Msg{Subject: subject, Data: data}
	if parent := tracing.Parent(ctx); parent != "" {
		m.Header = nats.Header{parentHeader: {parent}}
	}
	return m
}

// parentHeader is the header of W3C Trace Context.
const parentHeader = "traceparent"

func (c *conn) Publish(subject string, data []byte) error {
	if err := c.nc.Publish(subject, data); err != nil {
		return fmt.Errorf("bus: publish %s: %w", subject, Plain(err))
	}
	return nil
}

func (c *conn) Instance() string { return c.instance }

// permitted runs subscribe and waits until the server has processed it. The server reports a
// refused subject later and without naming the subscription, so any refusal in between counts as
// a refusal of this one.
func (c *conn) permitted(ctx context.Context, subscribe func() error) error {
	before := c.nc.LastError()
	if err := subscribe(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, drainTimeout)
	defer cancel()
	if err := c.nc.FlushWithContext(ctx); err != nil {
		return err
	}
	if after := c.nc.LastError(); after != before && errors.Is(after, nats.ErrPermissionViolation) { //nolint:errorlint // identity: a new refusal
		return after
	}
	return nil
}

// Close waits for messages in transit and closes the connection.
func (c *conn) Close() {
	if err := c.nc.Drain(); err != nil {
		c.nc.Close() // gone already, or not connected: nothing to wait for
	}
	<-c.closed
}

// joinedConn requests over one connection and serves over another.
type joinedConn struct {
	Conn
	serves Conn
}

// Join combines a process's two connections.
func Join(asks, serves Conn) Conn { return joinedConn{asks, serves} }

// Serve implements Conn.
func (j joinedConn) Serve(ctx context.Context, s Service, ready chan<- struct{}) error {
	return j.serves.Serve(ctx, s, ready)
}

// Close implements Conn.
func (j joinedConn) Close() {
	j.serves.Close()
	j.Conn.Close()
}

// NewNKey creates the key with which a third party's service connects: the seed, known only to
// the service, and the public key, known to the server.
func NewNKey() (seed, public string, err error) {
	pair, err := nkeys.CreateUser()
	if err != nil {
		return "", "", fmt.Errorf("bus: nkey: %w", err)
	}
	defer pair.Wipe()
	raw, err := pair.Seed()
	if err != nil {
		return "", "", fmt.Errorf("bus: nkey: %w", err)
	}
	public, err = pair.PublicKey()
	return string(raw), public, err
}

// PublicNKey returns the public key of a seed.
func PublicNKey(seed string) (string, error) {
	pair, err := nkeys.FromSeed([]byte(seed))
	if err != nil {
		return "", fmt.Errorf("bus: nkey: %w", err)
	}
	defer pair.Wipe()
	return pair.PublicKey()
}

// signNonce proves to a server that a connection has a seed.
func signNonce(seed string, nonce []byte) ([]byte, error) {
	pair, err := nkeys.FromSeed([]byte(seed))
	if err != nil {
		return nil, fmt.Errorf("bus: nkey: %w", err)
	}
	defer pair.Wipe()
	return pair.Sign(nonce)
}
