package node

import (
	"context"
	"log/slog"
	"path/filepath"

	"aob.dev/writ/agentic"
	"aob.dev/writ/executors/sandbox"
	"aob.dev/writ/gateway"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/bus"
	"aob.dev/writ/internal/bus/natsserver"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/router"
	"aob.dev/writ/router/recorder"
)

// openSandbox chooses how scripts are isolated on this machine.
func (n *Node) openSandbox(ctx context.Context) error {
	var err error
	if n.box, err = sandbox.Open(ctx, sandbox.Config{Dir: datadir.Runtime(n.cfg.Dir), Minimum: n.cfg.Driver}); err != nil {
		return err
	}
	n.cfg.Log.InfoContext(ctx, "sandbox", slog.String("driver", n.box.Driver()), slog.String("python", n.box.Python()))
	return nil
}

// openServices makes what Run will start: bus, recorder, router and gateway.
func (n *Node) openServices(ctx context.Context) error {
	n.recorder = recorder.New(n.journal, remembering{n.documents, n.directory, n.cfg.Now}, n.cfg.Log)
	n.recorder.Tenants, n.recorder.From = n.directory.Tenants, n.projected()
	n.recorder.Content = n.systemBlob
	secure, err := listenerTLS(n.cfg.NATSCert, n.cfg.NATSKey)
	if err != nil {
		return err
	}
	if n.server, err = natsserver.Start(ctx, natsserver.Options{
		Dir: filepath.Join(n.cfg.Dir, "nats"), Listen: n.cfg.NATS, TLS: secure,
		Executors: executorTypes(), Log: n.cfg.Log,
	}); err != nil {
		return err
	}
	if err := n.admitExternal(); err != nil {
		n.cfg.Log.ErrorContext(ctx, notAdmitted, slog.String("error", err.Error()))
	}
	core, err := n.connect(ctx, natsserver.Router)
	if err != nil {
		return err
	}
	if n.cfg.NATS != "" { // else nobody could read events
		teller, err := n.connect(ctx, natsserver.Teller)
		if err != nil {
			return err
		}
		if n.events, err = bus.NewPublisher(teller, n.cfg.Now, n.cfg.Log); err != nil {
			return err
		}
		n.recorder.Publish = n.events.Tell
	}
	n.monitor = n.newMonitor()
	if n.router, err = router.New(router.Config{
		Journal: erasing{n.journal, n.snapshots}, Records: n.journal, State: n.directory, Catalog: n.catalog, Blobs: n.blobs, Holdings: n.holdings, Remembered: n.remembered, Bus: core,
		Key: n.keys.signer(intents.RoleRouter), Policy: n.policy, PolicyPlace: n.policyPlace(), KeepPolicy: n.keepVersions, Now: n.cfg.Now, Log: n.cfg.Log,
		Meter: n.orders, Crashed: !n.ended, Blocked: n.blocked, Rates: n.cfg.Limits.Rates, UserHolds: n.cfg.Limits.UserHolds, TenantHolds: n.cfg.Limits.TenantHolds, Breakers: n.cfg.Limits.Breakers,
	}); err != nil {
		return err
	}
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
		Bus: agents, Frames: frames, Key: n.keys.signer(intents.RoleGateway), Origin: n.Origin(), Now: n.cfg.Now, Log: n.cfg.Log,
		Artifacts: kept{n.blobs}, Links: links, Registry: n, Profiles: n.cfg.Profiles,
		RunAgent: n.cfg.RunAgent, Gate: n.cfg.Gate, RateLimit: n.cfg.Limits.Requests, RateWindow: n.cfg.Limits.Window, MCPRate: n.cfg.Limits.MCPRate,
	})
	return err
}

func (n *Node) connect(ctx context.Context, user string) (bus.Conn, error) {
	c, err := n.server.Connect(ctx, user)
	if err != nil {
		return nil, err
	}
	n.conns[user] = c
	return c, nil
}

// executorTypes are our own executors with their intent types. Those of vendors
// are external executors.
func executorTypes() map[string][]string {
	out := make(map[string][]string)
	for _, r := range catalog.Builtin().Rows() {
		if r.Executor != catalog.ExecutorRouter {
			out[r.Executor] = append(out[r.Executor], r.Type)
		}
	}
	return out
}

// startAgents serves the roles of the agentic layer. Each has only its own connection and
// its own key.
func (n *Node) startAgents(g *group) error {
	config := func(user string, role intents.Role) (agentic.Config, error) {
		conn, err := n.connect(g.ctx, user)
		c := agentic.Config{Bus: conn, Origin: n.Origin(), Model: n.cfg.Model, Models: n.cfg.Models, Now: n.cfg.Now, Log: n.cfg.Log}
		if role != intents.RoleTask { // each step makes its own key
			key := n.keys.signer(role)
			c.Key = &key
		}
		return c, err
	}
	task, err := config(natsserver.Task, intents.RoleTask)
	if err != nil {
		return err
	}
	planner, err := config(natsserver.Planner, intents.RolePlanner)
	if err != nil {
		return err
	}
	manager, err := config(natsserver.Manager, intents.RoleManager)
	if err != nil {
		return err
	}
	runs, err := config(natsserver.Workflow, intents.RoleWorkflow)
	if err != nil {
		return err
	}
	task.Asked, task.Figure, manager.Figure = n.asks.Count, n.asks.Figure, n.asks.Figure
	if err := g.serve("task", agentic.NewTasks(task).Serve); err != nil {
		return err
	}
	if err := g.serve("planner", agentic.NewPlanner(planner).Serve); err != nil {
		return err
	}
	if err := g.serve("workflow engine", agentic.NewEngine(runs).Serve); err != nil {
		return err
	}
	return g.serve("manager", agentic.NewManager(manager).Serve)
}

// Bus is the CORE connection, for commands that look at services.
func (n *Node) Bus() bus.Conn { return n.conns[natsserver.Router] }
