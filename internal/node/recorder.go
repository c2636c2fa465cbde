package node

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"

	"aob.dev/writ/bus"
	"aob.dev/writ/bus/natsserver"
	"aob.dev/writ/executors"
	"aob.dev/writ/executors/files"
	"aob.dev/writ/executors/knowledge"
	"aob.dev/writ/executors/memory"
	"aob.dev/writ/router/recorder"
)

// progress is how far the documents have come.
type progress interface {
	Reached() int64
	Reach(ctx context.Context, position int64) error
}

// openRecorder makes the recorder. It writes nothing yet.
func (n *Node) openRecorder(ctx context.Context) error {
	n.recorder = recorder.New(n.journal, recorder.SparingRemoved(n.documents, n.directory, n.cfg.Now), n.cfg.Log)
	n.recorder.Tenants, n.recorder.From = n.directory.Tenants, n.projected()
	n.recorder.Content = n.systemBlob
	n.followers.Add(n.recorder.Progress)
	if n.index == nil { // a router of a cluster hears of it
		n.index = n.recorder
	}
	return n.openEvents(ctx)
}

// openEvents lets the recorder publish events if somebody could read them: over a listener, or on a
// cluster with a process that publishes them.
func (n *Node) openEvents(ctx context.Context) error {
	if n.standalone() && n.cfg.NATS == "" {
		return nil
	}
	teller, err := n.connect(ctx, natsserver.Teller)
	if !n.standalone() && errors.Is(err, fs.ErrNotExist) {
		n.cfg.Log.InfoContext(ctx, "no events are published for other systems", slog.String("why", err.Error()))
		return nil
	}
	if err != nil {
		return err
	}
	if n.events, err = bus.NewPublisher(teller, n.cfg.Now, n.cfg.Log); err == nil {
		n.recorder.Publish = n.events.Publish
	}
	return err
}

// startRecording starts the tasks of one process of a cell: the ledger and its witnesses, the
// documents, and their upkeep. Two processes that run them at once write the same.
func (n *Node) startRecording(g *group) error {
	g.run("ledger", n.ledger.Run)
	g.run("witnesses", n.witnesses().Run)
	if n.events != nil {
		g.run("events", n.events.Run)
	}
	g.run("recorder", func(ctx context.Context) error { return n.recorder.RunToEnd(ctx, n.journal.Next) })
	g.run("expiry", n.expire)
	g.run("files sweep", files.Sweeper{Blobs: n.blobs, Log: n.cfg.Log}.Run)
	g.run("knowledge", knowledge.Upkeep{Documents: n.documents, Tenants: n.directory.Tenants, Now: n.cfg.Now, Log: n.cfg.Log}.Run)
	if n.cfg.Embedder != nil {
		g.run("vectors", executors.Backfill{
			Documents: n.documents, Embedder: n.cfg.Embedder, Indices: []executors.EmbeddedIndex{memory.Embedded, knowledge.Embedded}, Tenants: n.directory.Tenants, Log: n.cfg.Log,
		}.Run)
	}
	return nil
}
