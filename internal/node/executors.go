package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"aob.dev/writ/bus"
	"aob.dev/writ/executors"
	"aob.dev/writ/executors/artifacts"
	"aob.dev/writ/executors/files"
	"aob.dev/writ/executors/knowledge"
	"aob.dev/writ/executors/logs"
	"aob.dev/writ/executors/memory"
	"aob.dev/writ/executors/plans"
	"aob.dev/writ/executors/python"
	"aob.dev/writ/executors/sandbox"
	"aob.dev/writ/executors/sessions"
	"aob.dev/writ/executors/skills"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/state/agents"
	"aob.dev/writ/storage"
)

// builtinRows are the built-in agents as agent_schemas has those of others.
func builtinRows() (out []json.RawMessage) {
	for _, d := range agents.Builtins() {
		if row, err := d.Row(); err == nil {
			raw, _ := json.Marshal(row) // plain data
			out = append(out, raw)
		}
	}
	return out
}

// startExecutors serves the executors of the process, each as a bus user of its own. It may
// receive its own types and start no requests.
func (n *Node) startExecutors(g *group) error {
	for name, handlers := range map[string]func(*group) (map[string]executors.Handler, error){
		artifacts.Name: n.artifactsHandlers,
		files.Name:     n.handlers(func() map[string]executors.Handler { return files.Handlers(n.blobs) }),
		knowledge.Name: n.handlers(func() map[string]executors.Handler {
			return knowledge.Handlers(knowledge.Config{Documents: n.documents, Blobs: n.blobs, Embedder: n.cfg.Embedder, Reranker: n.cfg.Reranker, Now: n.cfg.Now})
		}),
		logs.Name: n.logsHandlers,
		memory.Name: n.handlers(func() map[string]executors.Handler {
			return memory.Handlers(memory.Config{Documents: n.documents, Embedder: n.cfg.Embedder, Blobs: n.blobs, Builtins: builtinRows(), Now: n.cfg.Now})
		}),
		plans.Name: n.handlers(func() map[string]executors.Handler {
			return n.current(plans.Handlers(n.documents))
		}),
		python.Name: n.handlers(n.scriptHandlers),
		sessions.Name: n.handlers(func() map[string]executors.Handler {
			return sessions.Handlers(sessions.Config{Documents: n.documents, Now: n.cfg.Now, TTL: n.cfg.Limits.SessionTTL, MaxTurns: n.cfg.Limits.SessionTurns})
		}),
		skills.Name: n.handlers(func() map[string]executors.Handler {
			n.answers = skills.NewCache(n.cfg.Now)
			return skills.Handlers(skills.Config{
				Registry: n.registry, Blobs: n.blobs, Cache: n.answers, Now: n.cfg.Now, Log: n.cfg.Log,
				Workflows: sessions.Workflows{Documents: n.documents, Now: n.cfg.Now}, Dial: n.agentDialer(), Connections: n.connections.Handlers(),
			})
		}),
	} {
		if !n.carriesOut(name) {
			continue
		}
		of, err := handlers(g)
		if err == nil {
			err = n.startExecutor(g, name, of)
		}
		if err != nil {
			return fmt.Errorf("executor %s: %w", name, err)
		}
	}
	return nil
}

// handlers of an executor that needs nothing started.
func (n *Node) handlers(make func() map[string]executors.Handler) func(*group) (map[string]executors.Handler, error) {
	return func(*group) (map[string]executors.Handler, error) { return make(), nil }
}

func (n *Node) artifactsHandlers(*group) (map[string]executors.Handler, error) {
	links, err := n.links()
	return artifacts.Handlers(artifacts.Config{Blobs: n.blobs, Link: links.Link, Now: n.cfg.Now}), err
}

func (n *Node) logsHandlers(g *group) (map[string]executors.Handler, error) {
	followed, err := n.startLogs(g)
	if err != nil {
		return nil, err
	}
	return n.current(followed.Handlers()), nil
}

func (n *Node) startExecutor(g *group, name string, handlers map[string]executors.Handler) (err error) {
	conn := n.conns.of(name)
	if conn == nil {
		if conn, err = n.connect(g.ctx, name); err != nil {
			return err
		}
	}
	workers, beside, each := 0, map[string]bus.Handler(nil), map[string]bus.Handler(nil)
	switch name {
	case python.Name:
		workers = python.Workers
	case skills.Name:
		workers = skills.Workers
		beside = map[string]bus.Handler{bus.SkillVersions: n.tellVersions, bus.SkillAnswers: n.tellAnswers}
		each = map[string]bus.Handler{bus.CallerKeys: n.takeCallerKey}
	}
	return g.serve(name, func(ctx context.Context, ready chan<- struct{}) error {
		return executors.Serve(ctx, executors.Config{
			Bus: conn, Name: name, Version: "1.0.0", RouterKeys: n.trust, Origin: n.Origin(),
			Now: n.cfg.Now, Workers: workers, Beside: beside, Each: each, Log: n.cfg.Log, Ready: ready,
		}, handlers)
	})
}

// startLogs serves the streams of logs.
func (n *Node) startLogs(g *group) (*logs.Logs, error) {
	conn, err := n.connect(g.ctx, logs.Name)
	if err != nil {
		return nil, err
	}
	l := logs.New(logs.Config{
		Documents: n.documents, Reached: n.reached, RouterKeys: n.trust, Origin: n.Origin(), Base: n.base, Instance: conn.Instance(), Now: n.cfg.Now, Log: n.cfg.Log,
	})
	return l, g.serve("logs", func(ctx context.Context, ready chan<- struct{}) error { return l.Serve(ctx, conn, ready) })
}

// base is where people reach the gateway.
func (n *Node) base() string {
	if n.cfg.PublicURL != "" || n.listener == nil {
		return n.cfg.PublicURL
	}
	return n.URL()
}

// reached is how far the documents have come. A process that does not know gives the time:
// then a stream looks every second, and its plan is closed in the documents after its events.
func (n *Node) reached() int64 {
	if n.index != nil {
		return n.index.Reached()
	}
	return n.cfg.Now().Unix()
}

// projectionWait is how long a read waits for the recorder to catch up.
const projectionWait = 10 * time.Second

// current makes reads of projections see every record before their own. So a plan that was
// reported complete is read as complete.
func (n *Node) current(handlers map[string]executors.Handler) map[string]executors.Handler {
	out := make(map[string]executors.Handler, len(handlers))
	for typ, handle := range handlers {
		out[typ] = func(ctx context.Context, o *executors.Intent) (*executors.Result, error) {
			wait, cancel := context.WithTimeout(ctx, projectionWait)
			defer cancel()
			if err := n.recorded(wait, o); err != nil && ctx.Err() == nil {
				n.cfg.Log.WarnContext(ctx, "the recorder lags behind; a read may miss the latest records", slog.Int64("position", o.Ticket.Position))
			}
			return handle(ctx, o)
		}
	}
	return out
}

// recordedEvery is how often a process that does not follow the journal looks for an intent.
const recordedEvery = 50 * time.Millisecond

// recorded waits until the documents have every record before an intent. A process that does not
// know their position looks for the intent itself, which is written last of its record.
func (n *Node) recorded(ctx context.Context, o *executors.Intent) error {
	if n.index != nil {
		return n.index.Reach(ctx, o.Ticket.Position)
	}
	return clock.Every(ctx, recordedEvery, func() bool {
		doc, err := n.documents.Get(ctx, o.Ticket.Actor.Tenant, storage.IndexIntents, o.ID)
		return err == nil && doc.Position >= o.Ticket.Position // not of a refusal before
	})
}

// openSandbox opens the sandbox of scripts. If it cannot be had, or is weaker than the one that
// the data directory had before, exec_python is refused with the reason, and all else works.
func (n *Node) openSandbox(ctx context.Context) error {
	if known := sandbox.DriverNames(); n.cfg.Driver != "" && !slices.Contains(known, n.cfg.Driver) {
		return fmt.Errorf("sandbox: unknown driver %q: there are %s", n.cfg.Driver, strings.Join(known, ", "))
	}
	box, err := sandbox.Open(ctx, sandbox.Config{Dir: datadir.Runtime(n.cfg.Dir), Minimum: n.cfg.Driver})
	if err == nil {
		if err = sandbox.NoWeaker(datadir.SandboxFile(n.cfg.Dir), box.Driver(), n.cfg.Driver != ""); err != nil {
			err = errors.Join(err, box.Close())
		}
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		n.noSandbox = err.Error()
		n.cfg.Log.ErrorContext(ctx, "scripts are refused, as there is no sandbox for them: see writ doctor, and start again", slog.String("error", n.noSandbox))
		return nil //nolint:nilerr // exec_python alone is refused
	}
	n.box = box
	n.cfg.Log.InfoContext(ctx, "sandbox", slog.String("driver", n.box.Driver()), slog.String("python", n.box.Python()))
	return nil
}

// scriptHandlers are the handlers of scripts.
func (n *Node) scriptHandlers() map[string]executors.Handler {
	if n.box == nil {
		return python.Refusing(n.noSandbox)
	}
	return python.Handlers(n.box, n.blobs)
}
