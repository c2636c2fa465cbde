package node

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/policies"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/ledger"
)

// checkJournal refuses a journal that is behind its ledger, or empty beside a log
// that has begun, before anything is written: a genesis in an emptied journal would
// be a second beginning.
func (n *Node) checkJournal(context.Context) error {
	err := ledger.CheckAhead(datadir.Ledger(n.cfg.Dir), n.journal.Next())
	if err == nil && n.journal.Next() == 0 {
		err = datadir.CheckUnbegun(n.cfg.Dir)
	}
	return err
}

// openLedger opens the log over the journal. Nothing is appended before Run.
func (n *Node) openLedger(ctx context.Context) error {
	secret, err := ledger.CreateSecret(datadir.Tags(n.cfg.Dir))
	if err != nil {
		return fmt.Errorf("tag secret: %w", err)
	}
	n.ledger, err = ledger.Open(ctx, ledger.Config{
		Dir: datadir.Ledger(n.cfg.Dir), Origin: n.Origin(), Key: n.keys.signer(intents.RoleLedger), Known: func() []intents.Key { return datadir.LedgerKeys(n.directory) },
		Secret: secret, Records: n.journal, Log: n.cfg.Log, Held: n.ledgerHeld,
	})
	return err
}

// ledgerHeld: nothing is appended to a tree that may be another one than was shown.
func (n *Node) ledgerHeld() bool {
	return n.health.Up(conditionLedger) || n.health.Up(conditionWitness)
}

// keepVersions keeps the policy and the catalog by their digests, so that what
// they decided can be decided again: blobs of tenant system, the file list of
// the policy last. A crash in it leaves some of them, and the next start keeps
// the rest before anything is decided.
func (n *Node) keepVersions(ctx context.Context, engine *policies.Engine) error {
	doc, err := intents.Canonical(n.catalog.Document())
	if err != nil {
		return fmt.Errorf("catalog: %w", err)
	}
	if err := n.keep(ctx, doc, n.catalog.Digest()); err != nil {
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
	f, _, err := n.blobs.Fetch(ctx, ledger.SystemTenant, "cas://"+digest)
	if err == nil {
		return f.Close()
	}
	if !errors.Is(err, storage.ErrNotFound) {
		return err
	}
	ref, _, err := n.blobs.Keep(ctx, ledger.SystemTenant, bytes.NewReader(content))
	if err == nil && ref != "cas://"+digest {
		err = fmt.Errorf("%s was to be kept as %s", ref, digest)
	}
	return err
}

// prove keeps a policy and proves it, before it is put in force.
func (n *Node) prove(ctx context.Context, engine *policies.Engine) error {
	if err := n.router.SelfProof(ctx, engine); err != nil {
		return err
	}
	return n.keepVersions(ctx, engine)
}

// proofs is the ledger as HTTP serves it.
type proofs struct{ *ledger.Ledger }

func (p proofs) Proof(ctx context.Context, position int64) (doc json.RawMessage, published bool, err error) {
	c, err := p.Checkpoint(ctx, p.Keys()...)
	if err != nil {
		return nil, false, err
	}
	in, err := p.Inclusion(ctx, position, c)
	if errors.Is(err, ledger.ErrPending) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	doc, err = json.Marshal(in)
	return doc, true, err
}
