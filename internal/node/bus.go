package node

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync"

	"aob.dev/writ/bus"
	"aob.dev/writ/bus/natsserver"
	"aob.dev/writ/gateway"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// openBus starts the server in this process.
func (n *Node) openBus(ctx context.Context) error {
	secure, err := listenerTLS(n.cfg.NATSCert, n.cfg.NATSKey)
	if err != nil {
		return err
	}
	if n.server, err = natsserver.Start(ctx, natsserver.Options{
		Dir: filepath.Join(n.cfg.Dir, "nats"), Listen: n.cfg.NATS, TLS: secure,
		Executors: catalog.Executors(), Log: n.cfg.Log,
	}); err != nil {
		return err
	}
	n.bus = n.server
	if err := n.admitExternal(); err != nil {
		n.cfg.Log.ErrorContext(ctx, notAdmitted, slog.String("error", err.Error()))
	}
	_, err = n.connect(ctx, natsserver.Router)
	return err
}

// openGateway makes the gateway.
func (n *Node) openGateway(ctx context.Context) error {
	agents, err := n.connect(ctx, natsserver.Gateway)
	if err != nil {
		return err
	}
	frames, err := n.connect(ctx, natsserver.Frames)
	if err != nil {
		return err
	}
	links, err := n.links()
	if err != nil {
		return err
	}
	n.gateway, err = gateway.New(gateway.Config{
		Bus: agents, Frames: frames, Key: n.keys.Signer(intents.RoleGateway), Origin: n.Origin(), Now: n.cfg.Now, Log: n.cfg.Log,
		Artifacts: nodeBlobs{n.blobs}, Links: links, Registry: n, Profiles: n.cfg.Profiles, PublicURL: n.cfg.PublicURL,
		RunAgent: n.cfg.RunAgent, Routing: n.cfg.Routing, RateLimit: n.cfg.Limits.Requests, RateWindow: n.cfg.Limits.Window, MCPRate: n.cfg.Limits.MCPRate,
	})
	return err
}

func (n *Node) startGateway(g *group) error {
	if _, err := n.routers(); err != nil { // it reads there
		return err
	}
	g.run("gateway", n.gateway.Run)
	return nil
}

func (n *Node) connect(ctx context.Context, user string) (bus.Conn, error) {
	c, err := n.bus.Connect(ctx, user)
	if err != nil {
		return nil, err
	}
	n.conns.add(user, c)
	return c, nil
}

// Bus is the CORE connection, for commands that look at services.
func (n *Node) Bus() bus.Conn { return n.conns.of(natsserver.Router) }

// connections to the bus, one for each user of it. Services that a start has begun look them up
// while later steps of that start add theirs. The zero value has none. Safe for concurrent use.
type connections struct {
	mu     sync.Mutex
	byUser map[string]bus.Conn
}

func (c *connections) add(user string, conn bus.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byUser == nil {
		c.byUser = map[string]bus.Conn{}
	}
	c.byUser[user] = conn
}

// of returns the connection of a user, or nil.
func (c *connections) of(user string) bus.Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.byUser[user]
}

func (c *connections) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.byUser {
		conn.Close()
	}
}
