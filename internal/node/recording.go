package node

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"sync"
	"time"

	"aob.dev/writ/executors/files"
	"aob.dev/writ/executors/knowledge"
	"aob.dev/writ/executors/memory"
	"aob.dev/writ/internal/bus"
	"aob.dev/writ/internal/bus/natsserver"
	"aob.dev/writ/router/recorder"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// progress is how far the documents have come.
type progress interface {
	Reached() int64
	Reach(ctx context.Context, position int64) error
}

// wakers follow the journal, and are told of new records.
type wakers struct {
	mu  sync.Mutex // guards all
	all []*storage.Progress
}

// add one who follows. There may be records already.
func (w *wakers) add(p *storage.Progress) {
	w.mu.Lock()
	w.all = append(w.all, p)
	w.mu.Unlock()
	p.Wake()
}

func (w *wakers) wake() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.all {
		p.Wake()
	}
}

// openRecorder makes the recorder. It writes nothing yet.
func (n *Node) openRecorder(ctx context.Context) error {
	n.recorder = recorder.New(n.journal, remembering{n.documents, n.directory, n.cfg.Now}, n.cfg.Log)
	n.recorder.Tenants, n.recorder.From = n.directory.Tenants, n.projected()
	n.recorder.Content = n.systemBlob
	n.wakers.add(n.recorder.Progress)
	if n.index == nil { // a router of a cluster hears of it
		n.index = n.recorder
	}
	return n.openEvents(ctx)
}

// openEvents has the recorder publish events where somebody could read them: over a listener,
// or on a cluster that was given a process to publish them.
func (n *Node) openEvents(ctx context.Context) error {
	if n.alone() && n.cfg.NATS == "" {
		return nil
	}
	teller, err := n.connect(ctx, natsserver.Teller)
	if !n.alone() && errors.Is(err, fs.ErrNotExist) {
		n.cfg.Log.InfoContext(ctx, "no events are published for other systems", slog.String("why", err.Error()))
		return nil
	}
	if err != nil {
		return err
	}
	if n.events, err = bus.NewPublisher(teller, n.cfg.Now, n.cfg.Log); err == nil {
		n.recorder.Publish = n.events.Tell
	}
	return err
}

// startRecording starts all that one process of a cell does: the ledger and its witnesses,
// the documents, and what looks after them. Two that do it at once write the same.
func (n *Node) startRecording(g *group) error {
	g.run("ledger", n.ledger.Run)
	g.run("witnesses", n.witnesses().Run)
	if n.events != nil {
		g.run("events", n.events.Run)
	}
	g.run("recorder", n.record)
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

// recordTime bounds how long a store that is down keeps a node from ending.
const recordTime = time.Second

// record runs the recorder. When it ends nobody commits any more, and it first writes what was
// committed.
func (n *Node) record(ctx context.Context) error {
	lasting, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	stop := context.AfterFunc(ctx, func() {
		defer end()
		last, cancel := context.WithTimeout(lasting, recordTime)
		defer cancel()
		_ = n.recorder.Reach(last, n.journal.Next()) // the next start goes on where it ends
	})
	defer stop()
	return n.recorder.Run(lasting)
}

// remembering is a store for the recorder. It does not write documents again that a
// retention may have removed, when the recorder replays old records or is late.
type remembering struct {
	storage.Documents
	directory *state.State
	now       func() time.Time
}

// Project implements storage.Documents.
func (r remembering) Project(ctx context.Context, tenant, index string, p storage.Projection) error {
	before := r.directory.Removed(tenant, index, r.now())
	p.Put, p.Created = storage.Younger(index, p.Put, before), storage.Younger(index, p.Created, before)
	return r.Documents.Project(ctx, tenant, index, p)
}
