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

	"aob.dev/writ/internal/tracing"
)

// Options say where to connect and as whom. Exactly one of URL and InProcess.
type Options struct {
	URL       string                     // nats://host:port, several separated by commas
	TLS       *tls.Config                // of the connection to URL; nil: none, unless the URL is tls://
	InProcess nats.InProcessConnProvider // a server of this process: no socket at all

	User     string // also names the inbox: InboxPrefix(User)
	Password string // of a user of the server in this process
	Seed     string // of the connection's key; empty: it has a password
	Instance string // of the process; empty: it is not addressed alone

	// Log receives errors that no call returns: lost connections and refused
	// publishes. Nil: slog.Default.
	Log *slog.Logger
}

// connectTime is how long one server has for a connection: one that is held by its machine
// takes connections, and says nothing.
const connectTime = 5 * time.Second

// pingEvery is how often a server is asked whether it is there; after two in vain another one
// is tried.
const pingEvery = 5 * time.Second

// drainTimeout is how long Close waits for messages on their way.
const drainTimeout = 5 * time.Second

// InboxPrefix is where replies to a user arrive. No user may read another's.
func InboxPrefix(user string) string { return "_INBOX_" + user }

// conn is a Conn over nats.go.
type conn struct {
	nc       *nats.Conn
	frames   jetstream.JetStream // of readers of display frames
	instance string
	servers  int           // that Options name
	closed   chan struct{} // closed when nc is gone for good
}

var _ Conn = (*conn)(nil)

// Connect opens a connection of one user. It reconnects whenever the connection is
// lost; requests wait for that until their ctx ends.
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
		return nil, fmt.Errorf("bus: connect as %q: %w", o.User, err)
	}
	c.nc = nc
	if c.frames, err = jetstream.NewWithAPIPrefix(nc, strings.TrimSuffix(FramesAPI, ".")); err != nil {
		nc.Close()
		return nil, fmt.Errorf("bus: %w", err)
	}
	return c, nil
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
				log.Warn("connection lost", slog.String("error", err.Error()))
			}
		}),
		nats.ReconnectHandler(func(*nats.Conn) { log.Info("connected again") }),
		nats.ErrorHandler(func(_ *nats.Conn, sub *nats.Subscription, err error) {
			subject := ""
			if sub != nil {
				subject = sub.Subject
			}
			log.Error("message lost or refused", slog.String("subject", subject), slog.String("error", err.Error()))
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
		return nil, fmt.Errorf("bus: request %s: %w", subject, err)
	}
	return m.Data, nil
}

// message is one that tells its span, if there is one.
func message(ctx context.Context, subject string, data []byte) *nats.Msg {
	m := &nats.Msg{Subject: subject, Data: data}
	if parent := tracing.Parent(ctx); parent != "" {
		m.Header = nats.Header{parentHeader: {parent}}
	}
	return m
}

// parentHeader is W3C trace context's.
const parentHeader = "traceparent"

func (c *conn) Publish(subject string, data []byte) error {
	if err := c.nc.Publish(subject, data); err != nil {
		return fmt.Errorf("bus: publish %s: %w", subject, err)
	}
	return nil
}

// Instance implements Conn.
func (c *conn) Instance() string { return c.instance }

// permitted runs subscribe and waits until the server has processed it. The server
// reports a refused subject later, without naming the subscription: any refusal in
// between counts as a refusal of this one.
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

// Close waits for messages on their way and closes the connection.
func (c *conn) Close() {
	if err := c.nc.Drain(); err != nil {
		c.nc.Close() // gone already, or not connected: nothing to wait for
	}
	<-c.closed
}

// joined requests over one connection and serves over another.
type joined struct {
	Conn
	serves Conn
}

// Join makes one of a process's two connections.
func Join(asks, serves Conn) Conn { return joined{asks, serves} }

// Serve implements Conn.
func (j joined) Serve(ctx context.Context, s Service, ready chan<- struct{}) error {
	return j.serves.Serve(ctx, s, ready)
}

// Close implements Conn.
func (j joined) Close() {
	j.serves.Close()
	j.Conn.Close()
}
