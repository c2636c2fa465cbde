// Package node puts one process together: which roles run in it, how they are
// connected, and where their data is. It is the only importer of store drivers
// and of the NATS server.
package node

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync/atomic"

	"aob.dev/writ/bus"
	"aob.dev/writ/bus/natsserver"
	"aob.dev/writ/cell"
	"aob.dev/writ/executors/oauth"
	"aob.dev/writ/executors/sandbox"
	"aob.dev/writ/executors/skills"
	"aob.dev/writ/executors/skills/approval"
	"aob.dev/writ/gateway"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/durable"
	"aob.dev/writ/internal/health"
	"aob.dev/writ/internal/keydir"
	"aob.dev/writ/internal/problem/edge"
	"aob.dev/writ/internal/snapshot"
	"aob.dev/writ/internal/telemetry"
	"aob.dev/writ/monitor"
	"aob.dev/writ/policies"
	"aob.dev/writ/router"
	"aob.dev/writ/router/httpapi"
	"aob.dev/writ/router/recorder"
	"aob.dev/writ/state"
	"aob.dev/writ/state/agents"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/jetstream"
	"aob.dev/writ/storage/ledger"
	"aob.dev/writ/storage/opensearch"
	"aob.dev/writ/storage/quota"
	"aob.dev/writ/storage/sqlite"
)

// Node is one process: everything, or some roles on a cluster.
type Node struct {
	cfg       Config
	keys      *keydir.Ring // nil: the process signs nothing
	trust     trust
	published *cell.PublishedKeys // of a process of a cluster

	lock      *os.File
	revisions state.Revisions // of agents
	health    *health.Board
	guard     *clock.Guard                // nil: the clock is trusted
	overruled atomic.Bool                 // an operator has confirmed this log against a witness
	serving   bool                        // HTTP
	journal   journal                     // nil: the process does not follow it
	room      func() (sqlite.Room, error) // on the journal's disk; nil: it is on none of this process
	snapshots *snapshot.Local             // nil: the journal is not in this process
	stored    *snapshot.Cell              // nil: the process follows no journal of a cell
	followers storage.Followers
	index     progress // of the documents
	documents datadir.Documents
	remote    *opensearch.Documents // whose indices are still to be made; nil: none are
	blobs     *quota.Blobs
	server    *natsserver.Server // nil: the process is on a cluster
	bus       connector
	box       *sandbox.Sandbox
	noSandbox string // why there is none
	registry  *skills.Registry
	skills    *approval.Watcher

	connections *oauth.Connections

	agents    *agents.Watcher
	servers   *sandbox.Servers
	policy    *policies.Live
	catalog   *catalog.Catalog
	directory *state.State
	recorder  *recorder.Recorder
	events    *bus.Publisher
	holdings  *router.Holdings
	ledger    *ledger.Ledger
	recording atomic.Bool        // ledger is open
	stream    *jetstream.Journal // the journal of a cell
	term      *term              // of a router of a cell
	router    *router.Router
	gateway   *gateway.Gateway
	api       http.Handler       // routers' interface, and with a gateway for API keys; nil: not made yet
	access    *httpapi.AccessLog // nil: the process answers no reads
	answers   *skills.Cache      // nil: it carries out no skills
	listener  net.Listener
	secure    *tls.Config  // of the listener; nil: no TLS
	metered   net.Listener // nil: no metrics
	asks      *telemetry.Asks
	intents   *telemetry.Intents
	recent    *monitor.Recent
	monitor   *monitor.Watch
	lag       monitor.Lag
	conns     connections
	fatal     chan error
	ended     bool // the last process that served this directory ended cleanly

	holdingStore *sqlite.Holdings

	// APIKey is the key made at the first start; empty later. KeyInUse: it took the given
	// one instead. KeyUnknown: the given one is not in force.
	APIKey               string
	KeyInUse, KeyUnknown bool
	KeyWeak              bool // the given one can be guessed
	firstKeyChecked      bool
}

// Open prepares a node: it locks the data directory, opens the stores, which replays the
// journal, and makes keys and genesis on a first start. Nothing is served yet. Call Close
// even if Run is never called.
//
// Crash: before the genesis is committed, the next start begins again with the keys that
// exist. After it, the log's origin is permanent.
func Open(ctx context.Context, cfg Config) (n *Node, err error) {
	n = &Node{cfg: cfg, fatal: make(chan error, 1), asks: telemetry.NewAsks(), intents: telemetry.NewIntents()}
	n.agents = n.newAgents()
	defer func() {
		if err != nil {
			err = errors.Join(err, n.Close())
			n = nil
		}
	}()
	if err := datadir.Make(cfg.Dir); err != nil {
		return n, fmt.Errorf("data directory: %w", err)
	}
	if n.lock, err = datadir.Lock(cfg.Dir); err != nil {
		return n, err
	}
	if err := n.takeEnded(); err != nil {
		return n, err
	}
	if err := durable.Remove(datadir.AddressFile(n.cfg.Dir)); err != nil { // of a process that was killed
		return n, err
	}
	n.openHealth()
	n.tellConditions(nil) // replaces the conditions of another process
	if n.listener, err = listen(ctx, cfg.Listen, "--listen"); err != nil {
		return n, err
	}
	if n.secure, err = n.listenerTLS(cfg.TLSCert, cfg.TLSKey, "tls_cert"); err != nil {
		return n, err
	}
	if n.listener != nil && n.secure == nil && !nearby(n.listener.Addr().String()) {
		cfg.Log.WarnContext(ctx, "API keys and answers cross the network unencrypted: set --tls-cert and --tls-key, or let nothing but a proxy with TLS reach this address", slog.String("listen", n.listener.Addr().String()))
	}
	if n.metered, err = listen(ctx, cfg.Metrics, "--metrics"); err != nil {
		return n, err
	}
	if err := canListen(ctx, cfg.NATS, "--nats"); err != nil {
		return n, err
	}
	if n.standalone() {
		if err := datadir.CheckParts(cfg.Dir, cfg.Documents); err != nil {
			return n, err
		}
	}
	if err := n.openSteps(ctx); err != nil {
		return n, err
	}
	return n, nil
}

// listen opens a listener if there is an address. flag is where the address comes from.
func listen(ctx context.Context, addr, flag string) (net.Listener, error) {
	if addr == "" {
		return nil, nil
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %v: stop what uses the port, or name another with %s", addr, err, flag)
	}
	return l, nil
}

// canListen checks an address before the first record is written. The NATS server opens
// its own listener only later.
func canListen(ctx context.Context, addr, flag string) error {
	l, err := listen(ctx, addr, flag)
	if l == nil {
		return err
	}
	return l.Close()
}

// journal is the part of the journal's driver that a process uses.
type journal interface {
	storage.Journal
	storage.Records
	storage.Eraser
	io.Closer
}

// journalDamaged reports that the data beside a record's parts contradicts the parts. The parts are
// trusted, since the ledger's leaves cover them.
func (n *Node) journalDamaged(d *sqlite.DamageError) {
	n.cfg.Log.Error("the journal was changed by somebody else", slog.Int64("position", d.Position), slog.String("reason", d.Reason))
	n.health.Raise(health.Condition{
		Name: conditionBeside, Reason: "what the journal keeps beside its records did not agree with them; the records are trusted",
		Do: "find out who writes to the data directory, and check it: writ audit fsck --data DIR",
	})
}

// journalFailed ends the node: nothing can be recorded any more.
func (n *Node) journalFailed(err error) { n.fail(fmt.Errorf("journal: %w", err)) }

// fail ends the node, unless it is ending already.
func (n *Node) fail(err error) {
	select {
	case n.fatal <- err:
	default:
	}
}

// forgetFailure forgets that of a journal that was given up.
func (n *Node) forgetFailure() {
	select {
	case <-n.fatal: //nolint:errcheck // likewise
	default:
	}
}

// Origin of the log.
func (n *Node) Origin() string { return n.trust.Origin() }

// Addr is where HTTP is served; nil without a listener.
func (n *Node) Addr() net.Addr {
	if n.listener == nil {
		return nil
	}
	return n.listener.Addr()
}

// URL is where HTTP is served on this machine; empty without a listener.
func (n *Node) URL() string {
	switch {
	case n.listener == nil:
		return ""
	case n.secure != nil:
		return "https://" + n.listener.Addr().String()
	}
	return "http://" + n.listener.Addr().String()
}

// Start opens a node and runs it, until stop is called or ctx ends. It returns when intents are
// accepted. stop returns how the run ended, and closes the node.
func Start(ctx context.Context, cfg Config) (n *Node, stop func() error, err error) {
	if n, err = Open(ctx, cfg); err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- n.Run(ctx, ready) }()
	stop = func() error {
		cancel()
		return errors.Join(<-ended, n.Close())
	}
	select {
	case <-ready:
		return n, stop, nil
	case err := <-ended:
		ended <- errors.Join(err, ctx.Err()) // ended before it was up
		return nil, nil, stop()
	}
}

// Run serves until ctx ends or a service fails. ready, if not nil, is closed when intents
// are accepted. Shutdown goes from the outside in: HTTP, gateway and agents, router,
// executors, recorder. Close closes the stores.
func (n *Node) Run(ctx context.Context, ready chan<- struct{}) error {
	n.ended = false // until Run returns
	group := newGroup(ctx)
	err := n.startSteps(group) //nolint:contextcheck // the group has it
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		err = nil // ended before it was up
	} else if err == nil {
		if ready != nil {
			close(ready)
		}
		select {
		case <-ctx.Done():
		case err = <-n.fatal:
		case err = <-group.failed:
		}
	}
	if n.box != nil {
		// Before the services, which wait for running scripts.
		n.box.Stop(workGrace)
	}
	err = errors.Join(err, group.stop())
	n.ended = err == nil
	return err
}

// unblocked waits until no condition, including witnesses' reports, stops the node from accepting
// intents. Meanwhile nothing is written, and HTTP reports the reason.
func (n *Node) unblocked(g *group) error {
	n.askWitnesses(g.ctx)
	free := func() bool {
		_, blocked := n.blocked()
		return !blocked
	}
	if free() {
		return nil
	}
	if err := n.serveHTTP(g); err != nil {
		return err
	}
	return clock.Every(g.ctx, lookEvery, free)
}

// serveHTTP is the last service to start, unless a start has to report that it waits.
func (n *Node) serveHTTP(g *group) error {
	if n.serving {
		return nil
	}
	n.serving = true
	if n.listener == nil {
		return nil
	}
	h, err := n.handler()
	if err != nil {
		return err
	}
	l := edge.Default.Listener(n.listener)
	if n.secure != nil { // HTTP/1.1, whose connections have the limits of package edge
		l = tls.NewListener(l, n.secure)
	}
	g.http("http", edge.Default.Server(h), l)
	return datadir.WriteAddress(n.cfg.Dir, n.listener.Addr(), n.cfg.TLSCert)
}

// Close undoes Open, in reverse order.
func (n *Node) Close() error {
	var errs []error
	if !n.standalone() { // it reads over a connection
		errs = append(errs, closed(n.journal))
	}
	n.conns.close()
	if n.server != nil {
		n.server.Close()
	}
	errs = append(errs, closed(n.registry))
	if n.servers != nil {
		n.servers.Close() // the servers have ended with their clients
	}
	errs = append(errs, closed(n.box))
	if n.standalone() { // else the ledger was closed with the lease
		errs = append(errs, closed(n.ledger), closed(n.journal))
	}
	errs = append(errs, closed(n.holdingStore), closed(n.documents), closed(n.blobs))
	_, _ = closed(n.listener), closed(n.metered) // closed already if HTTP was served
	errs = append(errs, closed(n.access))
	if n.lock != nil {
		errs = append(errs, durable.Remove(datadir.AddressFile(n.cfg.Dir)))
		if err := errors.Join(errs...); err == nil {
			errs = append(errs, n.putEnded())
		}
		errs = append(errs, n.lock.Close())
	}
	return errors.Join(errs...)
}

// closed closes an opened store.
func closed[T interface {
	comparable
	io.Closer
}](c T) error {
	var none T
	if c == none {
		return nil
	}
	return c.Close()
}
