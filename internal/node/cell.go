package node

import (
	"context"
	"errors"
	"fmt"

	"aob.dev/writ/bus/natsserver"
	"aob.dev/writ/cell"
	"aob.dev/writ/intents"
	"aob.dev/writ/router"
)

// errNotBegun reports that a cell has keys and no log.
var errNotBegun = errors.New("the log of the cell has not begun: writ admin cell begin begins it")

// began makes sure that the log has begun, and is the one that the keys are for.
func (n *Node) began(ctx context.Context) error {
	if n.has(natsserver.Router) {
		if err := n.keepVersions(ctx, n.policy.Engine()); err != nil {
			return err
		}
	}
	if n.journal.Next() == 0 {
		if n.cfg.Cluster.genesis == "" {
			return errNotBegun
		}
		if err := router.Begin(ctx, n.journal, n.cfg.Cluster.genesis, n.cfg.Now()); err != nil {
			return err
		}
	}
	if err := n.directory.Err(); err != nil {
		return err
	}
	if is, want := n.directory.Origin(), n.Origin(); is != want {
		return fmt.Errorf("keys: they are of the log %s, and the cell's is %s", want, is)
	}
	return nil
}

// BeginCell begins the log of a cell, has the first API key made and returns it. It acts as a
// router meanwhile. If the log has begun and has an API key, the key is empty.
//
// Crash: committed records stay, and the same call continues after them.
func BeginCell(ctx context.Context, cfg Config, dir string) (key string, err error) {
	genesis, err := cell.Genesis(dir)
	if err != nil {
		return "", err
	}
	n, stop, err := operate(ctx, cfg, dir, genesis)
	if err != nil {
		return "", err
	}
	err = n.firstKey(ctx)
	return n.APIKey, errors.Join(err, stop())
}

// operate is a router of the cell whose keys are in a directory, with the operator's key, for a moment.
func operate(ctx context.Context, cfg Config, dir, genesis string) (*Node, func() error, error) {
	cluster := *cfg.Cluster
	cluster.Roles, cluster.operates, cluster.genesis = []string{natsserver.Router}, true, genesis
	cluster.Keys = []string{cell.Keys(dir, natsserver.Router), cell.Keys(dir, string(intents.RoleOperator))}
	cfg.Cluster, cfg.Listen, cfg.Metrics = &cluster, "", ""
	return Start(ctx, cfg)
}
