package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/bus"
	"aob.dev/writ/internal/bus/natsserver"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/durable"
	"aob.dev/writ/internal/keydir"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/jetstream"
	"aob.dev/writ/storage/ledger"
	"aob.dev/writ/storage/sqlite"
)

// copyBatch is how many records are written with one sync.
const copyBatch = 1024

// CopyCell copies the record of a cell into a data directory, which all commands for auditors
// and policy authors read. cell is the directory with all keys. Run again, it goes on behind
// what it has; what was erased since stays in the copy. records is how many the copy has.
//
// Crash: what was copied stays, and the next call goes on.
func CopyCell(ctx context.Context, cfg Config, cell, to string) (records int64, err error) {
	if err := datadir.Make(to); err != nil {
		return 0, err
	}
	lock, err := datadir.Lock(to)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if err := copyKeys(cell, to); err != nil {
		return 0, err
	}
	if err := cfg.Blobs.Remember(to); err != nil {
		return 0, err
	}
	journal, err := sqlite.OpenJournal(ctx, datadir.Journal(to), sqlite.JournalOptions{FreeFloor: cfg.Limits.FreeFloor})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, journal.Close()) }()
	if err := copyRecords(ctx, cfg.Cluster.Bus, journal); err != nil {
		return 0, err
	}
	return journal.Next(), proveCopy(ctx, cfg, to, journal)
}

// copyKeys gathers the keys of all roles, and the secret of tags.
func copyKeys(cell, to string) error {
	if err := durable.MkdirAll(datadir.Keys(to)); err != nil {
		return err
	}
	files := map[string]string{filepath.Join(CellKeys(cell, natsserver.Recorder), tagsName): datadir.Tags(to)}
	for role, of := range given {
		if of.key != "" {
			name := string(of.key) + ".pem"
			files[filepath.Join(CellKeys(cell, role), name)] = filepath.Join(datadir.Keys(to), name)
		}
	}
	for from, file := range files {
		raw, err := os.ReadFile(from) //nolint:gosec // G304: the operator names the directory
		if err != nil {
			return fmt.Errorf("%w: name the directory that writ cell create made, with the keys of all roles", err)
		}
		if err := durable.Write(file, raw); err != nil {
			return err
		}
	}
	return nil
}

// copyRecords copies those that the copy does not have.
func copyRecords(ctx context.Context, at BusAt, journal *sqlite.Journal) (err error) {
	conn, err := at.Connect(ctx, natsserver.Recorder)
	if err != nil {
		return err
	}
	defer conn.Close()
	js, err := bus.JetStream(conn)
	if err != nil {
		return err
	}
	var batch []storage.Entry
	var failed error
	flush := func() {
		if failed == nil {
			failed = journal.Import(ctx, batch)
		}
		batch = nil
	}
	next := journal.Next()
	stream, err := jetstream.Open(ctx, js, jetstream.Options{Observer: func(e storage.Entry) {
		if e.Record.Position < next {
			return
		}
		if batch = append(batch, e); len(batch) == copyBatch {
			flush()
		}
	}})
	if err != nil {
		return err
	}
	err = stream.Close() // nobody calls the observer any more
	flush()
	return errors.Join(err, failed)
}

// proveCopy makes the ledger of the copy. The tree follows from the records, so it is that of
// the cell.
func proveCopy(ctx context.Context, cfg Config, to string, journal *sqlite.Journal) (err error) {
	fold, err := datadir.Fold(ctx, journal)
	if err != nil {
		return err
	}
	held, err := keydir.LoadAll(datadir.Keys(to))
	if err != nil {
		return err
	}
	keys, err := held.InForce(fold.JWKS().Keys)
	if err != nil {
		return err
	}
	secret, err := ledger.ReadSecret(datadir.Tags(to))
	if err != nil {
		return err
	}
	l, err := ledger.Open(ctx, ledger.Config{
		Dir: datadir.Ledger(to), Origin: fold.Origin(), Key: keys[intents.RoleLedger], Known: func() []intents.Key { return datadir.LedgerKeys(fold) },
		Secret: secret, Records: journal, Log: cfg.Log,
	})
	if err != nil {
		return err
	}
	_, err = l.Sync(ctx)
	return errors.Join(err, l.Close())
}
