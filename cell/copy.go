package cell

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"aob.dev/writ/bus"
	"aob.dev/writ/bus/natsserver"
	"aob.dev/writ/intents"
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

// Copy copies the record of a cell into a data directory, which all commands for auditors and
// policy authors can read.
type Copy struct {
	Bus       Bus
	Blobs     datadir.BlobsAt // where the blobs of the cell are: the copy reads them there
	FreeFloor int64           // bytes of disk that stay free
	Log       *slog.Logger
}

// Make copies. cell is the directory with the keys of all roles. A repeated call continues after
// the last copied record; what was erased since stays in the copy. records is how many the copy
// has.
//
// Crash: what was copied stays, and the next call continues.
func (c Copy) Make(ctx context.Context, cell, to string) (records int64, err error) {
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
	if err := c.Blobs.Remember(to); err != nil {
		return 0, err
	}
	journal, err := sqlite.OpenJournal(ctx, datadir.Journal(to), sqlite.JournalOptions{FreeFloor: c.FreeFloor})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, journal.Close()) }()
	if err := copyRecords(ctx, c.Bus, journal); err != nil {
		return 0, err
	}
	return journal.Next(), c.prove(ctx, to, journal)
}

// copyKeys collects the keys of all roles, including those made since, and the secret of tags. The
// root key is offline, and a copy does not need it.
func copyKeys(cell, to string) error {
	if err := durable.MkdirAll(datadir.Keys(to)); err != nil {
		return err
	}
	files := map[string]string{filepath.Join(Keys(cell, natsserver.Recorder), Tags): datadir.Tags(to)}
	for role, of := range given {
		if of.key == "" || of.key == intents.RoleRoot {
			continue
		}
		names, err := fs.Glob(os.DirFS(Keys(cell, role)), string(of.key)+".*pem") // later ones have their kid in the name
		if err != nil {
			return err
		}
		if len(names) == 0 {
			names = []string{string(of.key) + ".pem"}
		}
		for _, name := range names {
			files[filepath.Join(Keys(cell, role), name)] = filepath.Join(datadir.Keys(to), name)
		}
	}
	for from, file := range files {
		raw, err := os.ReadFile(from) //nolint:gosec // G304: the operator names the directory
		if err != nil {
			return fmt.Errorf("%w: name the directory that writ admin cell create made, with the keys of all roles but root", err)
		}
		if err := durable.Write(file, raw); err != nil {
			return err
		}
	}
	return nil
}

// copyRecords copies the records that the copy does not have.
func copyRecords(ctx context.Context, at Bus, journal *sqlite.Journal) (err error) {
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

// prove makes the ledger of the copy. The tree follows from the records, so it is that of the cell.
func (c Copy) prove(ctx context.Context, to string, journal *sqlite.Journal) (err error) {
	rebuilt, err := datadir.RebuildState(ctx, journal)
	if err != nil {
		return err
	}
	held, err := keydir.LoadAll(datadir.Keys(to))
	if err != nil {
		return err
	}
	keys, err := held.InForce(rebuilt.JWKS().Keys)
	if err != nil {
		return err
	}
	secret, err := ledger.ReadSecret(datadir.Tags(to))
	if err != nil {
		return err
	}
	l, err := ledger.Open(ctx, ledger.Config{
		Dir: datadir.Ledger(to), Origin: rebuilt.Origin(), Key: keys[intents.RoleLedger], Known: func() []intents.Key { return datadir.LedgerKeys(rebuilt) },
		Secret: secret, Records: journal, Log: c.Log,
	})
	if err != nil {
		return err
	}
	_, err = l.Sync(ctx)
	return errors.Join(err, l.Close())
}
