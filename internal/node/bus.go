package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"aob.dev/writ/bus"
	"aob.dev/writ/bus/natsserver"
	"aob.dev/writ/gateway"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/datadir"
)

// openBus starts the server in this process.
func (n *Node) openBus(ctx context.Context) error {
	secure, err := n.listenerTLS(n.cfg.NATSCert, n.cfg.NATSKey, "nats_cert")
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
		Artifacts: nodeBlobs{n.blobs}, Links: links, Registry: n, Profiles: n.cfg.Profiles, People: n.cfg.People, PublicURL: n.cfg.PublicURL, UserHeaders: n.cfg.Users, Origins: n.cfg.Origins,
		RunAgent: n.cfg.RunAgent, Routing: n.cfg.Routing, RateLimit: n.cfg.Limits.Requests, RateWindow: n.cfg.Limits.Window, MCPRate: n.cfg.Limits.MCPRate, MCPTools: n.cfg.Limits.MCPTools, MCPPinned: n.cfg.MCPPinned,
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

// openCatalog reads the rows of the catalog directory, before anything is decided.
func (n *Node) openCatalog(context.Context) (err error) {
	n.catalog, err = catalog.Open(n.cfg.Catalog)
	return err
}

// admitExternal lets external executors and readers of events in that are not revoked. It leaves out types that
// are not in the catalog or belong to another executor, because the catalog may have
// changed since the credentials were issued. It also leaves out executors whose file
// cannot be read, so one bad file does not delay the revocation of others.
func (n *Node) admitExternal() error {
	known, unread := datadir.Executors.List(n.cfg.Dir)
	readers, others := datadir.EventReaders.List(n.cfg.Dir)
	var in []natsserver.External
	for _, o := range known {
		var types []string
		for _, typ := range o.Types {
			if r, ok := n.catalog.Lookup(typ); ok && r.Vendor() && r.Executor == o.Name {
				types = append(types, typ)
			}
		}
		if o.Revoked == nil && strings.HasPrefix(o.Name, "x-") && len(types) > 0 {
			in = append(in, natsserver.External{Name: o.Name, NKey: o.NKey, Types: types})
		}
	}
	for _, o := range readers {
		if o.Revoked == nil {
			in = append(in, natsserver.External{Name: bus.EventReader(o.Name), NKey: o.NKey})
		}
	}
	return errors.Join(unread, others, n.server.SetExternal(in))
}

// notAdmitted is logged: one bad file excludes its executor and does not prevent the start of the
// node.
const notAdmitted = "credentials of executors or readers cannot be read; these cannot connect"

// externalPoll is how often the node looks for credentials that were issued or revoked.
const externalPoll = 500 * time.Millisecond

// followExternal applies the changes of `writ admin executor issue` and `revoke`. It logs an error
// once; the start has logged the first one.
func (n *Node) followExternal(ctx context.Context) error {
	logged := fmt.Sprint(n.admitExternal())
	return clock.Loop(ctx, externalPoll, func() {
		err := n.admitExternal()
		if text := fmt.Sprint(err); text != logged {
			logged = text
			if err != nil {
				n.cfg.Log.ErrorContext(ctx, notAdmitted, slog.String("error", text))
			}
		}
	})
}
