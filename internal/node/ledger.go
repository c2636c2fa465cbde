package node

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"aob.dev/writ/cell"
	"aob.dev/writ/intents"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/health"
	"aob.dev/writ/policies"
	"aob.dev/writ/router/httpapi"
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
