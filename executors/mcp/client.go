// Package mcp calls skills: it is a client of Model Context Protocol servers, over
// streamable HTTP or over the standard streams of a child process. It speaks protocol
// 2026-07-28, without sessions, and the older ones with a handshake.
//
//	c, err := mcp.Dial(ctx, src, mcp.Options{})     // src from mcp.ParseSource
//	tools, err := c.Manifests(ctx)                  // what the server declares, with digests
//	res, err := c.Call(ctx, "rank", input, mcp.CallMeta{IntentID: id})
//
// A server is not trusted: its responses are bounded in size and time, its structured output is
// checked against the schema that it declared itself, its texts are escaped before they are logged,
// redirects are not followed, and a process gets four variables of our environment and no more. It
// can be isolated from the machine, see Options.Isolation. Failures are an [*Error] of one of the
// kinds of this package.
package mcp

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/client"
	wire "github.com/mark3labs/mcp-go/mcp"
	"golang.org/x/sync/singleflight"
)

// Client talks to one server. It is safe for concurrent use, reconnects after the
// server was gone, and must be closed.
type Client struct {
	src Source
	opt Options
	log *slog.Logger

	hide   func(string) string // secrets of the source
	asides *asides

	dialing chan struct{} // has a token while a caller dials

	pingless atomic.Bool // the server answers no ping

	life    context.Context // until Close
	end     context.CancelFunc
	listing singleflight.Group // callers share one listing

	mu     sync.Mutex     // guards the fields below, and refs of every conn
	conn   *conn          // nil: connect before the next use
	open   map[*conn]bool // conn, and older ones with calls in flight
	tools  map[string]*tool
	named  []string // skills that the server named, and need not list
	closed bool

	closing sync.WaitGroup // connections being closed
}

// conn is one connection: to a server over HTTP, or to a child process.
type conn struct {
	rpc   *client.Client
	dead  func() bool // reports whether the other side can no longer answer
	close func()      // ends the connection and all calls in flight; blocks until the child is dead
	refs  int         // calls in flight
}

var errClosed = errors.New("the client is closed")

// Dial connects to the server of src and shakes hands. A server that is down
// is ErrUnavailable.
func Dial(ctx context.Context, src Source, opt Options) (*Client, error) {
	opt = opt.withDefaults(src)
	c := &Client{
		src: src, opt: opt, log: opt.Log.With(slog.String("skill_server", src.Endpoint())),
		hide: src.hider(), dialing: make(chan struct{}, 1), open: map[*conn]bool{},
	}
	for _, f := range src.HeaderFiles {
		others := c.hide
		c.hide = func(text string) string { return f.hide(others(text)) }
	}
	if own := c.hide; opt.Hide != nil {
		c.hide = func(text string) string { return opt.Hide(own(text)) }
	}
	c.life, c.end = context.WithCancel(context.WithoutCancel(ctx))
	c.asides = newAsides(c.log, c.hide)
	cn, err := c.acquire(ctx)
	if err != nil {
		c.end()
		return nil, c.conceal(err)
	}
	c.release(cn)
	return c, nil
}

// Close ends the connection and fails the calls in flight. A child process is
// dead when Close returns.
func (c *Client) Close() error {
	c.end()
	c.mu.Lock()
	c.closed, c.conn = true, nil
	for cn := range c.open {
		c.shut(cn)
	}
	c.mu.Unlock()
	c.closing.Wait()
	return nil
}

// acquire returns a live connection, dialling if there is none. The caller
// releases it.
func (c *Client) acquire(ctx context.Context) (*conn, error) {
	if cn, err := c.live(); cn != nil || err != nil {
		return cn, err
	}
	select {
	case c.dialing <- struct{}{}:
		defer func() { <-c.dialing }()
	case <-ctx.Done():
		return nil, &Error{Kind: ErrUnavailable, Reason: "the caller gave up while connecting", Undelivered: true, Err: ctx.Err()}
	}
	if cn, err := c.live(); cn != nil || err != nil {
		return cn, err // another caller has just dialled
	}
	cn, err := c.dial(ctx)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open[cn] = true
	if c.closed {
		c.shut(cn)
		return nil, &Error{Kind: ErrUnavailable, Reason: "not connected", Undelivered: true, Err: errClosed}
	}
	cn.refs++
	c.conn = cn
	c.tools = nil // another process may declare other tools
	return cn, nil
}

// live returns the present connection, if it can still answer.
func (c *Client) live() (*conn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, &Error{Kind: ErrUnavailable, Reason: "not connected", Undelivered: true, Err: errClosed}
	}
	if c.conn != nil && c.conn.dead() {
		c.dropLocked(c.conn)
	}
	if c.conn != nil {
		c.conn.refs++
	}
	return c.conn, nil
}

func (c *Client) release(cn *conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	cn.refs--
	if cn.refs == 0 && c.conn != cn {
		c.shut(cn)
	}
}

// drop makes the next use connect again. Calls in flight on cn continue.
func (c *Client) drop(cn *conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dropLocked(cn)
}

func (c *Client) dropLocked(cn *conn) {
	if c.conn == cn {
		c.conn = nil
	}
	if cn.refs == 0 {
		c.shut(cn)
	}
}

// shut closes cn once, on a goroutine that Close waits for. The caller holds mu.
func (c *Client) shut(cn *conn) {
	if c.open[cn] {
		delete(c.open, cn)
		c.closing.Go(cn.close)
	}
}

// dial opens a connection and shakes hands, within the start timeout.
func (c *Client) dial(ctx context.Context) (*conn, error) {
	open := c.openHTTP
	switch {
	case c.src.URL == "":
		open = c.openStdio
	case c.src.OpenAPI != "":
		open = c.openREST
	}
	cn, err := open(ctx)
	if err != nil {
		return nil, &Error{Kind: ErrUnavailable, Reason: "cannot start the server", Undelivered: true, Err: err}
	}
	ctx, st := withState(ctx)
	ctx, cancel := context.WithTimeout(ctx, c.opt.StartTimeout)
	defer cancel()
	cn.rpc.OnNotification(func(n wire.JSONRPCNotification) { //nolint:contextcheck // it comes by itself
		if n.Method == wire.MethodNotificationToolsListChanged {
			c.unlist(cn)
		}
		c.asides.notified(n)
	})
	if err := shakeHands(ctx, cn.rpc); err != nil {
		e := classify(ctx, st, err, cn)
		e.Undelivered = true
		if c.src.URL == "" && cn.dead() { // the transport's error is of no use
			e.Reason, e.Err = "its program ended before it answered: run its command by itself to see why", nil
		}
		cn.close()
		return nil, e
	}
	c.log.DebugContext(ctx, "connected", slog.String("protocol", cn.rpc.ProtocolVersion()))
	return cn, nil
}

// unlist has the next call list the tools again: the server says that they have changed.
func (c *Client) unlist(cn *conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn == cn {
		c.tools = nil
	}
}

func shakeHands(ctx context.Context, rpc *client.Client) error {
	// The transport uses its start context for its whole life.
	if err := rpc.Start(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	req := wire.InitializeRequest{}
	req.Params.ClientInfo = wire.Implementation{Name: "writ", Version: "1"}
	_, err := rpc.Initialize(ctx, req)
	return err
}
