package measure

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"aob.dev/writ/audit"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/policies"
	"aob.dev/writ/storage/ledger"
)

// auditCallers is how many turns of a generated log go on at once: enough that
// their commits wait for few syncs.
const auditCallers = 64

// madeLog is a log that a router has made, and its bundle.
type madeLog struct {
	dir     string
	intents int64
	bundle  string // file
	trust   *audit.Trust
}

// makeLog plays turns until so many intents have been decided, over the
// product's own router, journal and ledger, and exports all of it to a file
// below dir: real signatures, a grant for each turn, plans, tasks with keys of
// their own, and refusals of every stage that leaves a record.
func makeLog(ctx context.Context, dir string, total int64) (m madeLog, err error) {
	w, err := newWorld(ctx, dir, time.Now)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	if err := w.start(ctx, answering{}, 0); err != nil {
		return m, err
	}
	source, err := w.played(ctx, total, &m.intents)
	if err != nil {
		return m, err
	}
	bundle := filepath.Join(dir, "bundle.jsonl")
	f, err := os.Create(bundle) //nolint:gosec // G703: our own temporary directory
	if err != nil {
		return m, err
	}
	out := bufio.NewWriterSize(f, 1<<20)
	_, err = audit.Export(ctx, out, source, audit.Selection{})
	if err := errors.Join(err, out.Flush(), f.Close()); err != nil {
		return m, err
	}
	trust := audit.NewTrust(w.keys[intents.RoleRoot].VerificationKey())
	m.dir, m.bundle, m.trust = dir, bundle, &trust
	return m, nil
}

// keepVersions keeps what decides, so that bundles have it.
func (w *world) keepVersions(ctx context.Context) error {
	source := policies.Embedded().Deciding()
	for _, content := range append(slices.Collect(maps.Values(source)), source.Manifest(), catalog.Builtin().Canonical()) {
		if _, _, err := w.config.Blobs.Keep(ctx, ledger.SystemTenant, bytes.NewReader(content)); err != nil {
			return err
		}
	}
	return nil
}

// play has turns played by auditCallers at once until n intents are decided.
func (w *world) play(ctx context.Context, n int64) (int64, error) {
	var decided, next atomic.Int64
	err := together(auditCallers, func(int) (bool, error) {
		i := int(next.Add(1))
		if err := w.turn(ctx, i, &decided); err != nil {
			return false, fmt.Errorf("turn %d: %w", i, err)
		}
		return decided.Load() < n, ctx.Err()
	})
	return decided.Load(), err
}

// played has n intents decided while the ledger follows, as it does in production,
// and waits until all of it is published. More intents may be decided.
func (w *world) played(ctx context.Context, n int64, decided *int64) (s audit.Source, err error) {
	secret, err := ledger.CreateSecret(filepath.Join(w.dir, "tags"))
	if err != nil {
		return s, err
	}
	l, end, err := w.follow(ctx, secret)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, end()) }()
	if *decided, err = w.play(ctx, n); err != nil {
		return s, err
	}
	origin := w.config.State.Origin()
	_, err = l.Sync(ctx)
	return audit.Source{
		Origin: origin, Records: w.journal, Ledger: ledger.NewReader(filepath.Join(w.dir, "ledger"), origin), Blobs: w.config.Blobs,
		Tags: ledger.NewTags(secret, origin), LedgerKey: w.keys[intents.RoleLedger], RouterKeys: []intents.Signer{w.keys[intents.RoleRouter]},
	}, err
}
