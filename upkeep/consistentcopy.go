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

// momentTries bounds the search for a moment in which no document is ahead of the journal.
const momentTries = 100

// encryptedDocuments is the file of a backup with the documents, each encrypted under its user's key.
const encryptedDocuments = "documents.encrypted"

// stores copies journal and documents as of one moment. Two files have no common transaction: their
// moments are taken right after each other, the journal's first, until no document was written
// between them by an intent that the journal's moment lacks. A backup never has an effect without
// its intent.
func (c *copier) stores(ctx context.Context, leaves int64) (records int64, documents bool, err error) {
	var copies []*sqlite.Copy
	defer func() {
		for _, one := range copies {
			err = errors.Join(err, one.Close())
		}
	}()
	names := []string{"journal/journal.db"}
	one, err := c.approach(ctx, sqlite.CopyJournal, datadir.JournalFile(c.from), names[0])
	if err != nil {
		return 0, false, err
	}
	copies = append(copies, one)
	path := datadir.DocumentsFile(c.from)
	if _, err := os.Stat(path); err == nil {
		documents, names = true, append(names, encryptedDocuments)
		keys, err := sqlite.OpenUserKeys(c.from)
		if err != nil {
			return 0, false, err
		}
		encrypt := func(ctx context.Context, from, to string) (*sqlite.Copy, error) {
			return sqlite.EncryptDocuments(ctx, from, to, keys)
		}
		if one, err = c.approach(ctx, encrypt, path, names[1]); err != nil {
			return 0, false, err
		}
		// What was written while the documents were copied, so that little is left.
		copies = append(copies, one)
		if err := copies[0].Approach(ctx); err != nil {
			return 0, false, err
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return 0, false, err
	}
	records, err = moment(ctx, copies)
	if leaves > records && (err == nil || errors.Is(err, errAhead)) { // of a directory that was put together by hand
		return 0, false, fmt.Errorf("%w: it has %d leaves, the journal %d records", ledger.ErrAhead, leaves, records)
	}
	if err != nil {
		return 0, false, err
	}
	for _, one := range copies {
		err = errors.Join(err, one.Finish(ctx))
	}
	for _, name := range names {
		if err == nil {
			err = c.durable(name)
		}
	}
	return records, documents, err
}

// approach copies most of a database.
func (c *copier) approach(ctx context.Context, begin func(ctx context.Context, from, to string) (*sqlite.Copy, error), from, name string) (*sqlite.Copy, error) {
	if _, err := os.Stat(from); err != nil {
		return nil, err
	}
	to := filepath.Join(c.to, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return nil, err
	}
	one, err := begin(ctx, from, to)
	if err != nil {
		return nil, err
	}
	if err := one.Approach(ctx); err != nil {
		return nil, errors.Join(err, one.Close())
	}
	return one, nil
}

// moment begins the copy of the journal, and of the documents if they are copied.
func moment(ctx context.Context, copies []*sqlite.Copy) (records int64, err error) {
	for range momentTries {
		if records, err = copies[0].Begin(ctx); err != nil || len(copies) == 1 {
			return records, err
		}
		newest, err := copies[1].Begin(ctx)
		if err != nil || newest < records {
			return records, err
		}
		if err := errors.Join(copies[1].Leave(ctx), copies[0].Leave(ctx)); err != nil {
			return 0, err
		}
	}
	return records, fmt.Errorf("%w, in %d tries: make the backup when fewer intents come; where none come, the journal is older than the documents", errAhead, momentTries)
}

// errAhead: the moment of the documents is after an intent that the journal's moment lacks.
var errAhead = errors.New("documents were written faster than two files can be read")

// durable syncs a file of the backup and records its digest.
func (c *copier) durable(name string) error {
	f, err := os.Open(filepath.Join(c.to, filepath.FromSlash(name)))
	if err != nil {
		return err
	}
	h := sha256.New()
	n, err := io.Copy(h, f)
	c.files = append(c.files, BackupFile{Name: name, Bytes: n, SHA256: hex.EncodeToString(h.Sum(nil))})
	return errors.Join(err, f.Sync(), f.Close())
}
