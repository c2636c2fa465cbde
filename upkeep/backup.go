package upkeep

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/durable"
	"aob.dev/writ/state"
	"aob.dev/writ/storage/ledger"
	"aob.dev/writ/storage/sqlite"
)

// BackupFormat is the version of the backup's format.
const BackupFormat = 1

// backupManifest is written last: a backup without it is not valid.
const backupManifest = "backup.json"

// Backup describes a copy of a data directory, in backup.json: its files have the names that they
// have there, but for the documents (encryptedDocuments).
type Backup struct {
	Format  int       `json:"format"`
	Origin  string    `json:"origin"`
	At      time.Time `json:"at"`      // of the moment of journal and documents
	Records int64     `json:"records"` // of the journal
	Leaves  int64     `json:"leaves"`  // of the ledger's checkpoint; at most Records
	// Documents are in the backup. If they are stored elsewhere they are not.
	Documents bool `json:"documents"`
	// Keys reports whether the backup has the private keys of all roles that the directory holds.
	// Without them a node cannot be started on what is restored, nor can its ledger be checked.
	Keys  bool         `json:"keys"`
	Files []BackupFile `json:"files"`
}

// BackupFile is one file of a backup; Name has slashes.
type BackupFile struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"` // hex
}

// Bytes of all files.
func (b Backup) Bytes() (n int64) {
	for _, f := range b.Files {
		n += f.Bytes
	}
	return n
}

// MakeBackup copies a data directory to a directory that must not exist yet, or into a file whose
// name ends in .tar. A process may use the data directory meanwhile. keys includes the private
// keys. The keys of erasable parts, and those that each user's documents are encrypted under, are never
// in it: CopyKeys copies them afterwards.
//
// It copies ledger, journal, documents and blobs, in this order, so that each copy has what the
// copies before it refer to. Journal and documents are of one moment: each document follows from
// records that the copy of the journal has.
//
// Crash: the copied files are in a directory named with .partial at the end, which becomes the
// backup once all of it is durable.
func MakeBackup(ctx context.Context, dir, to string, keys bool, now time.Time) (b Backup, err error) {
	if _, err := os.Lstat(to); err == nil {
		return b, fmt.Errorf("%s already exists: name another; a backup is never overwritten", to)
	}
	origin, err := originOf(ctx, dir)
	if err != nil {
		return b, err
	}
	c := copier{from: dir, to: to + ".partial"}
	if err := os.Mkdir(c.to, 0o700); errors.Is(err, fs.ErrNotExist) {
		return b, fmt.Errorf("no backup was made: %w: make the directory that it goes into, or name another", err)
	} else if err != nil {
		return b, fmt.Errorf("%w: another backup is being made there, or one was interrupted; in that case remove it", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(c.to)) }()
	b = Backup{Format: BackupFormat, Origin: origin, At: now.UTC().Truncate(time.Millisecond), Keys: keys}
	if b.Leaves, err = c.ledger(ctx); err != nil {
		return b, err
	}
	if b.Records, b.Documents, err = c.stores(ctx, b.Leaves); err != nil {
		return b, err
	}
	trees := []string{"blobs/cas", "blobs/scopes"}
	if keys {
		trees = append(trees, "keys")
	}
	for _, tree := range trees {
		if err := c.tree(ctx, tree, anyFile); err != nil {
			return b, err
		}
	}
	if err := c.file("blobs/place.json"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return b, err
	}
	b.Files = c.files
	if err := writeManifest(filepath.Join(c.to, backupManifest), b); err != nil {
		return b, err
	}
	if strings.HasSuffix(to, ".tar") {
		return b, pack(ctx, c.to, to, b)
	}
	return b, commitDir(c.to, to)
}

// originOf returns the origin of the log of a data directory.
func originOf(ctx context.Context, dir string) (string, error) {
	records, err := sqlite.OpenRecords(ctx, datadir.Journal(dir))
	if err != nil {
		return "", fmt.Errorf("%w: name a data directory with --data", err)
	}
	root, err := datadir.RootOf(ctx, records)
	return state.Origin(root.Public), errors.Join(err, records.Close())
}

func writeManifest(path string, b Backup) error {
	raw, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return err
	}
	return durable.New(path, append(raw, '\n'))
}

// copier copies files of a data directory and records their digests.
type copier struct {
	from, to string
	files    []BackupFile
}

// ledger copies the log. The checkpoint goes first and the state of the tree second, so that all
// tiles that they name exist when tiles are copied.
func (c *copier) ledger(ctx context.Context) (leaves int64, err error) {
	for _, name := range []string{"checkpoint", ".state/treeState", ".state/version", ".state/gcState"} {
		if err := c.file("ledger/" + name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, err
		}
	}
	if err := c.tree(ctx, "ledger/tile", tileFile); err != nil {
		return 0, err
	}
	text, err := os.ReadFile(filepath.Join(c.to, "ledger", "checkpoint"))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	at, err := ledger.ReadCheckpoint(string(text))
	return at.Size, err
}

// tileFile is the name of a tile, complete or not. A tile that is being written has a longer name,
// also of digits, and disappears under it.
var tileFile = regexp.MustCompile(`^[0-9]{1,3}$`)

var anyFile = regexp.MustCompile("")

// tree copies the files below a directory whose names match. A file that disappears meanwhile was
// not needed: an incomplete tile has become a complete one, or a step has ended.
func (c *copier) tree(ctx context.Context, name string, match *regexp.Regexp) error {
	root := filepath.Join(c.from, filepath.FromSlash(name))
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || !d.Type().IsRegular() || !match.MatchString(d.Name()) {
			return errors.Join(err, ctx.Err())
		}
		rel, err := filepath.Rel(c.from, path)
		if err != nil {
			return err
		}
		err = c.file(filepath.ToSlash(rel))
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if tile, _, unfinished := strings.Cut(filepath.ToSlash(rel), ".p/"); unfinished {
			return c.file(tile)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("copy %s: %w", name, err)
	}
	return nil
}

// file copies one file durably, unless it has been copied already.
func (c *copier) file(name string) error {
	in, err := os.Open(filepath.Join(c.from, filepath.FromSlash(name)))
	if err != nil {
		return err
	}
	f, err := receive(in, filepath.Join(c.to, filepath.FromSlash(name)))
	err = errors.Join(err, in.Close())
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	f.Name = name
	c.files = append(c.files, f)
	return err
}

// receive writes a new file with mode 0600, and the directories above it.
func receive(r io.Reader, path string) (BackupFile, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return BackupFile{}, err
	}
	n, sum, err := durable.Receive(path, r)
	return BackupFile{Bytes: n, SHA256: hex.EncodeToString(sum[:])}, err
}

// commitDir gives a finished directory its name, durably.
func commitDir(from, to string) error {
	if err := syncBelow(from); err != nil {
		return err
	}
	return durable.Rename(from, to)
}

// syncBelow makes the names in a directory, and below it, durable.
func syncBelow(from string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		return durable.SyncDir(path)
	})
}

// pack puts a finished directory into one file, backup.json first.
func pack(ctx context.Context, dir, to string, b Backup) error {
	return durable.Stream(to, func(out io.Writer) error {
		w := tar.NewWriter(out)
		for _, f := range append([]BackupFile{{Name: backupManifest}}, b.Files...) {
			if err := errors.Join(ctx.Err(), packFile(w, dir, f.Name, b)); err != nil {
				return err
			}
		}
		return w.Close()
	})
}

func packFile(w *tar.Writer, dir, name string, b Backup) error {
	in, err := os.Open(filepath.Join(dir, filepath.FromSlash(name))) //nolint:gosec // G304: a directory of ours
	if err != nil {
		return err
	}
	info, err := in.Stat()
	if err == nil {
		err = packed(w, name, b.At, info.Size(), in)
	}
	if err != nil {
		err = fmt.Errorf("pack %s: %w", name, err)
	}
	return errors.Join(err, in.Close())
}

// packed adds a file of a known size to a tar file.
func packed(w *tar.Writer, name string, at time.Time, size int64, content io.Reader) error {
	if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: size, ModTime: at, Format: tar.FormatPAX}); err != nil {
		return err
	}
	_, err := io.Copy(w, content)
	return err
}

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
