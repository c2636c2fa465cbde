package upkeep

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/storage/ledger"
	"aob.dev/writ/storage/sqlite"
)

// momentTries bounds how often a moment is looked for in which no document is
// ahead of the journal.
const momentTries = 100

// stores copies journal and documents as of one moment. Two files have no common
// transaction: their moments are taken right after each other, the journal's
// first, until no document was written between them by an order that the journal's
// moment has not. An effect is never in a backup without its order.
func (c *copier) stores(ctx context.Context, leaves int64) (records int64, documents bool, err error) {
	for range momentTries {
		records, documents, err = c.moment(ctx, leaves)
		if !errors.Is(err, errAhead) {
			return records, documents, err
		}
	}
	return 0, false, fmt.Errorf("%w, in %d tries: make the backup when fewer orders come; where none come, the journal is older than the documents", err, momentTries)
}

// errAhead: the moment of the documents is after an order that the journal's is
// not.
var errAhead = errors.New("documents were written faster than two files can be read")

// moment copies both, unless the documents are ahead.
func (c *copier) moment(ctx context.Context, leaves int64) (records int64, documents bool, err error) {
	journal, err := sqlite.OpenSnapshot(ctx, datadir.JournalFile(c.from))
	if err != nil {
		return 0, false, err
	}
	defer func() { err = errors.Join(err, journal.Close()) }()
	path := datadir.DocumentsFile(c.from)
	if _, err := os.Stat(path); err == nil {
		documents = true
	} else if !errors.Is(err, fs.ErrNotExist) {
		return 0, false, err
	}
	var docs *sqlite.Snapshot
	if documents {
		if docs, err = sqlite.OpenSnapshot(ctx, path); err != nil {
			return 0, false, err
		}
		defer func() { err = errors.Join(err, docs.Close()) }()
	}
	if records, err = journal.Records(ctx); err != nil {
		return 0, false, err
	}
	if leaves > records { // of a directory that was put together by hand
		return 0, false, fmt.Errorf("%w: it has %d leaves, the journal %d records", ledger.ErrAhead, leaves, records)
	}
	if documents {
		newest, err := docs.Newest(ctx)
		if err != nil {
			return 0, false, err
		}
		if newest >= records {
			return 0, false, errAhead
		}
	}
	if err := c.snapshot(ctx, journal, "journal/journal.db"); err != nil || !documents {
		return records, documents, err
	}
	return records, documents, c.snapshot(ctx, docs, "documents.db")
}

func (c *copier) snapshot(ctx context.Context, s *sqlite.Snapshot, name string) error {
	path := filepath.Join(c.to, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if err := s.CopyTo(ctx, path); err != nil {
		return fmt.Errorf("copy %s: %w", name, err)
	}
	f, err := os.Open(path) //nolint:gosec // G304: a directory of ours
	if err != nil {
		return err
	}
	h := sha256.New()
	n, err := io.Copy(h, f)
	c.files = append(c.files, BackupFile{Name: name, Bytes: n, SHA256: hex.EncodeToString(h.Sum(nil))})
	return errors.Join(err, f.Sync(), f.Close())
}
