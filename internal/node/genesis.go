package node

import (
	"context"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/failpoint"
	"aob.dev/writ/internal/keydir"
	"aob.dev/writ/router"
	"aob.dev/writ/state"
)

// makeKeys makes the keys of a directory without a journal, which is made next.
//
// Crash: the next start makes those that are missing. Had the journal been made first, a crash
// between the two would leave what looks like a log whose keys are lost.
func (n *Node) makeKeys(context.Context) error {
	if made, err := datadir.HasJournal(n.cfg.Dir); err != nil || made {
		return err
	}
	if err := n.checkFirstKey(); err != nil {
		return err
	}
	_, err := keydir.Create(datadir.Keys(n.cfg.Dir))
	return err
}

// checkFirstKey refuses a weak first key before anything is made. It says once what it accepts.
func (n *Node) checkFirstKey() error {
	if n.cfg.FirstKey == "" || n.firstKeyChecked {
		return nil
	}
	n.firstKeyChecked = true
	return n.checkKey(n.cfg.FirstKey)
}

// begin loads the keys, and makes keys and genesis at a first start.
func (n *Node) begin(ctx context.Context) error {
	if n.journal.Next() == 0 {
		if err := n.beginLog(ctx); err != nil {
			return err
		}
	}
	var err error
	n.trust = rebuiltTrust{n.directory}
	n.keys, err = keydir.OpenRing(func() (keydir.Signers, error) { return keydir.LoadAll(datadir.Keys(n.cfg.Dir)) }, n.trust, n.cfg.Log)
	if err != nil {
		return err
	}
	return n.keepVersions(ctx, n.policy.Engine())
}

// beginLog makes the keys that are missing, and the genesis.
func (n *Node) beginLog(ctx context.Context) error {
	if err := n.checkFirstKey(); err != nil {
		return err
	}
	keys, err := keydir.Create(datadir.Keys(n.cfg.Dir))
	if err != nil {
		return err
	}
	if err := n.keepVersions(ctx, n.policy.Engine()); err != nil {
		return err
	}
	token, err := state.NewGenesis(keys[intents.RoleRoot], keys.KeySet(), n.policy.Engine().Digest(), n.catalog, n.beginData()...)
	if err != nil {
		return err
	}
	failpoint.Hit(failpoint.GenesisKeys)
	if err := router.Begin(ctx, n.journal, token, n.cfg.Now()); err != nil {
		return err
	}
	failpoint.Hit(failpoint.GenesisCommitted)
	return nil
}

// trust is a process's knowledge of the log's keys.
type trust interface {
	intents.Keys
	keydir.KeySet
	Origin() string
}

// rebuiltTrust trusts the records.
type rebuiltTrust struct{ *state.State }

// Key implements intents.Keys.
func (f rebuiltTrust) Key(kid string) (intents.Key, error) { return f.View().Key(kid) }
