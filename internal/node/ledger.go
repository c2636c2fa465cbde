package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"aob.dev/writ/bus"
	"aob.dev/writ/bus/natsserver"
	"aob.dev/writ/cell"
	"aob.dev/writ/executors"
	"aob.dev/writ/executors/files"
	"aob.dev/writ/executors/knowledge"
	"aob.dev/writ/executors/memory"
	"aob.dev/writ/intents"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/health"
	"aob.dev/writ/policies"
	"aob.dev/writ/router/httpapi"
	"aob.dev/writ/router/recorder"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/ledger"
)

// checkJournal refuses a journal that is behind its ledger, or that is empty although the
// log has begun. It runs before anything is written: a genesis in an emptied journal would
// begin the log a second time.
func (n *Node) checkJournal(context.Context) error {
	err := ledger.CheckAhead(datadir.Ledger(n.cfg.Dir), n.journal.Next())
	if err == nil && n.journal.Next() == 0 {
		err = datadir.CheckUnbegun(n.cfg.Dir)
	}
	return err
}

// openLedger opens the log over the journal. Nothing is appended before Run.
func (n *Node) openLedger(ctx context.Context) error {
	secret, err := n.tagSecret()
	if err != nil {
		return fmt.Errorf("tag secret: %w", err)
	}
	n.ledger, err = ledger.Open(ctx, ledger.Config{
		Dir: datadir.Ledger(n.cfg.Dir), Origin: n.Origin(), Key: n.keys.Signer(intents.RoleLedger), Known: func() []intents.Key { return datadir.LedgerKeys(n.directory) },
		Secret: secret, Records: n.journal, Log: n.cfg.Log, Held: n.ledgerHeld,
	})
	if err == nil {
		n.followers.Add(n.ledger.Progress)
		n.recording.Store(true)
		if n.snapshots != nil {
			n.snapshots.Ledger = n.ledger
		}
	}
	return err
}

// ledgerHeld reports that nothing may be appended: the tree may not be the one that others
// have seen.
func (n *Node) ledgerHeld() bool {
	return n.health.Up(conditionLedger) || n.health.Up(conditionWitness)
}

// keepVersions stores the policy and the catalog by their digests, so that their decisions
// can be repeated. They are blobs of tenant system; the policy's list of files comes last.
// A crash leaves some of them, and the next start stores the rest before anything is
// decided.
func (n *Node) keepVersions(ctx context.Context, engine *policies.Engine) error {
	if err := n.keep(ctx, n.catalog.Canonical(), n.catalog.Digest()); err != nil {
		return err
	}
	source := engine.Source().Deciding()
	for _, content := range source {
		if err := n.keep(ctx, content, intents.Digest(content)); err != nil {
			return err
		}
	}
	return n.keep(ctx, source.Manifest(), engine.Digest())
}

func (n *Node) keep(ctx context.Context, content []byte, digest string) error {
	return storage.KeepSystem(ctx, n.blobs, content, digest)
}

// prove tests a policy and stores it, before it is put in force.
func (n *Node) prove(ctx context.Context, engine *policies.Engine) error {
	if err := n.router.SelfProof(ctx, engine); err != nil {
		return err
	}
	return n.keepVersions(ctx, engine)
}

// ledgerAPI proves and serves the log: the ledger here, or the recorder's of the cell.
func (n *Node) ledgerAPI() (httpapi.Ledger, error) {
	switch {
	case n.standalone():
		return n.ledger, nil
	case n.recorder == nil:
		return cell.NewFarProofs(n.cfg.Cluster.Recorders, n.cfg.Log)
	}
	return cell.NearProofs{Ledger: func() *ledger.Ledger {
		if !n.recording.Load() {
			return nil
		}
		return n.ledger
	}}, nil
}

// Witness cosigns checkpoints of the log.
type Witness = ledger.Witness

// ParseWitness reads "<verifier key> <URL>".
func ParseWitness(s string) (Witness, error) { return ledger.ParseWitness(s) }

func (n *Node) witnesses() *ledger.Witnesses {
	w := ledger.NewWitnesses(n.ledger.Reader, n.ledger.Keys, n.cfg.Log, n.cfg.Witnesses...)
	w.Contradicted = n.contradicted
	return w
}

// witnessesFirst is how long a start waits for witnesses. A later answer is used, too.
const witnessesFirst = 5 * time.Second

// askWitnesses asks every witness about the log before anything is written to it. A log
// that was restored from an older copy would become a second log with the same name.
func (n *Node) askWitnesses(ctx context.Context) {
	if len(n.cfg.Witnesses) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, witnessesFirst)
	defer cancel()
	n.witnesses().Once(ctx)
}

// contradicted stops intents and new leaves until an operator has confirmed. After that
// this process trusts its own log.
func (n *Node) contradicted(witness string, err error) {
	if n.overruled.Load() {
		return
	}
	n.cfg.Log.Error("a witness contradicts the log", slog.String("witness", witness), slog.String("error", err.Error()))
	n.raise(context.Background(), health.Condition{
		Name: conditionWitness, Blocks: true,
		Reason: "a witness has seen a longer log than this one, or another one: the data directory was restored from an older copy, or the witness lies",
		Do:     "restore the newer copy, or begin a new log; to go on with this one, run on this machine: writ admin confirm witness --data DIR",
	})
}

// progress is how far the documents have come.
type progress interface {
	Reached() int64
	Reach(ctx context.Context, position int64) error
}

// openRecorder makes the recorder. It writes nothing yet.
func (n *Node) openRecorder(ctx context.Context) error {
	n.recorder = recorder.New(n.journal, n.documents, n.cfg.Log)
	n.recorder.RemovedBefore = func(tenant, index string) time.Time { return n.directory.RemovedBefore(tenant, index, n.cfg.Now()) }
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
