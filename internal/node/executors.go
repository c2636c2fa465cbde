package node

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"aob.dev/writ/executors"
	"aob.dev/writ/executors/artifacts"
	"aob.dev/writ/executors/files"
	"aob.dev/writ/executors/knowledge"
	"aob.dev/writ/executors/logs"
	"aob.dev/writ/executors/memory"
	"aob.dev/writ/executors/plans"
	"aob.dev/writ/executors/python"
	"aob.dev/writ/executors/sessions"
	"aob.dev/writ/executors/skills"
	"aob.dev/writ/intents"
	"aob.dev/writ/storage"
)

// searchedByPlans are the indices that orders to the plans executor search.
var searchedByPlans = map[string][]string{
	"plan.get": {storage.IndexEvents}, "plan.list": {storage.IndexPlans}, "plan.usage": {storage.IndexPlans, storage.IndexSkillCalls},
	"message.list": {storage.IndexMessages}, "schema.list": {storage.IndexSchemas},
}

// searchedByKnowledge are the orders that look for parts of documents, or remove them.
var searchedByKnowledge = map[string][]string{
	"kb.index": {storage.IndexChunks}, "kb.search": {storage.IndexChunks}, "kb.list": {storage.IndexChunks}, "kb.remove": {storage.IndexChunks},
}

// startExecutors serves every executor as a bus user of its own. It may receive its own
// types and start no requests.
func (n *Node) startExecutors(g *group) error {
	links, err := n.links()
	if err != nil {
		return err
	}
	followed, err := n.startLogs(g)
	if err != nil {
		return err
	}
	for name, handlers := range map[string]map[string]executors.Handler{
		artifacts.Name: artifacts.Handlers(artifacts.Config{Blobs: n.blobs, Link: links.Link, Now: n.cfg.Now}),
		files.Name:     files.Handlers(n.blobs),
		knowledge.Name: n.fresh(knowledge.Handlers(knowledge.Config{Documents: n.documents, Blobs: n.blobs, Embedder: n.cfg.Embedder, Reranker: n.cfg.Reranker, Now: n.cfg.Now}), searchedByKnowledge),
		logs.Name:      n.current(followed.Handlers()),
		memory.Name:    n.fresh(memory.Handlers(memory.Config{Documents: n.documents, Embedder: n.cfg.Embedder, Blobs: n.blobs, Now: n.cfg.Now}), map[string][]string{"memory.query": {storage.IndexMemory, storage.IndexMoments, storage.IndexMessages}}),
		plans.Name:     n.current(n.fresh(plans.Handlers(n.documents, n.cfg.Prices), searchedByPlans)),
		python.Name:    python.Handlers(n.box, n.blobs),
		sessions.Name:  n.fresh(sessions.Handlers(sessions.Config{Documents: n.documents, Now: n.cfg.Now, TTL: n.cfg.Limits.SessionTTL, MaxTurns: n.cfg.Limits.SessionTurns}), map[string][]string{"session.list": {storage.IndexSessions}}),
		skills.Name: skills.Handlers(skills.Config{
			Registry: n.registry, Blobs: n.blobs, Now: n.cfg.Now, Log: n.cfg.Log, Rate: n.rateOf,
			Workflows: sessions.Workflows{Documents: n.documents, Now: n.cfg.Now}, Dial: n.agentDialer(),
		}),
	} {
		conn := n.conns[name]
		if conn == nil {
			if conn, err = n.connect(g.ctx, name); err != nil {
				return err
			}
		}
		workers := 0
		if name == python.Name {
			workers = python.Workers
		}
		if err := g.serve(name, func(ctx context.Context, ready chan<- struct{}) error {
			return executors.Serve(ctx, executors.Config{
				Bus: conn, Name: name, Version: "1.0.0", RouterKeys: n.routerKeys(), Origin: n.Origin(),
				Now: n.cfg.Now, Workers: workers, Log: n.cfg.Log, Ready: ready,
			}, handlers)
		}); err != nil {
			return fmt.Errorf("executor %s: %w", name, err)
		}
	}
	g.run("expiry", n.expire)
	g.run("files sweep", files.Sweeper{Blobs: n.blobs, Log: n.cfg.Log}.Run)
	g.run("knowledge", knowledge.Upkeep{Documents: n.documents, Embedder: n.cfg.Embedder, Tenants: n.directory.Tenants, Now: n.cfg.Now, Log: n.cfg.Log}.Run)
	if n.cfg.Embedder != nil {
		g.run("embeddings", memory.Embeddings{
			Documents: n.documents, Embedder: n.cfg.Embedder, Tenants: n.directory.Tenants, Now: n.cfg.Now, Log: n.cfg.Log,
		}.Run)
	}
	return nil
}

// startLogs serves the streams of logs.
func (n *Node) startLogs(g *group) (*logs.Logs, error) {
	conn, err := n.connect(g.ctx, logs.Name)
	if err != nil {
		return nil, err
	}
	l := logs.New(logs.Config{
		Documents: n.documents, Reached: n.recorder.Reached, RouterKeys: n.routerKeys(), Origin: n.Origin(), Base: n.base, Instance: conn.Instance(), Now: n.cfg.Now, Log: n.cfg.Log,
	})
	return l, g.serve("logs", func(ctx context.Context, ready chan<- struct{}) error { return l.Serve(ctx, conn, ready) })
}

// base is where people reach the gateway.
func (n *Node) base() string {
	if n.cfg.PublicURL != "" || n.listener == nil {
		return n.cfg.PublicURL
	}
	return "http://" + n.listener.Addr().String()
}

// routerKeys are the router keys of the key set in force.
func (n *Node) routerKeys() intents.Keys {
	return intents.KeysFunc(func(kid string) (intents.Key, error) { return n.directory.View().Key(kid) })
}

// projectionWait is how long a read waits for the recorder to catch up.
const projectionWait = 10 * time.Second

// current makes reads of projections see every record before their own. So a plan that was
// reported complete is read as complete.
func (n *Node) current(handlers map[string]executors.Handler) map[string]executors.Handler {
	out := make(map[string]executors.Handler, len(handlers))
	for typ, handle := range handlers {
		out[typ] = func(ctx context.Context, o *executors.Order) (*executors.Result, error) {
			wait, cancel := context.WithTimeout(ctx, projectionWait)
			defer cancel()
			if err := n.recorder.Reach(wait, o.Ticket.Position); err != nil && ctx.Err() == nil {
				n.cfg.Log.WarnContext(ctx, "the recorder lags behind; a read may miss the latest records", slog.Int64("position", o.Ticket.Position))
			}
			return handle(ctx, o)
		}
	}
	return out
}
