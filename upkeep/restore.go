package upkeep

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"aob.dev/writ/audit"
	"aob.dev/writ/intents"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/durable"
	"aob.dev/writ/internal/failpoint"
	"aob.dev/writ/storage/ledger"
	"aob.dev/writ/storage/sqlite"
)

// ErrBackup says that something is not a backup, or has changed since it was written.
var ErrBackup = errors.New("no backup, or damaged")

// ErrNotEmpty says that a directory to restore into is not empty.
var ErrNotEmpty = errors.New("is not empty: restore into a new directory")

// RestoreReport describes what was restored.
type RestoreReport struct {
	Backup
	// Verified: the whole directory was checked as `writ audit fsck` does. Without keys only
	// digests and sizes were.
	Verified bool
	Health   audit.Health
	// Lost are the documents of users whose keys were destroyed after the backup, as an erasure does.
	// Those that the journal makes were made again.
	Lost []LostDocuments
}

// LostDocuments are the documents of one user that are not restored.
type LostDocuments = sqlite.LostDocuments

// Restore makes a data directory from a backup and the newest copy of the keys of its erasable
// parts. The directory must be missing or empty. keys is a
// directory of keys for a backup without them; empty: none. What was erased after the backup is
// erased in the copy, and the restored log cannot explain it: Health lists it. A backup that does not match its
// digests is ErrBackup; one that matches them but has an unsound record is reported in Health. In
// both cases nothing is left.
//
// Crash: the written files are in a directory .restoring, inside of one that exists (which may be a
// volume of its own) or else beside it. It gets its place once all of it is durable and checked. As
// long as it exists nothing starts on the directory.
func Restore(ctx context.Context, from, dir, keys, erasable string) (r RestoreReport, err error) {
	if _, err := os.Stat(from); err != nil {
		return r, fmt.Errorf("%w: %w", ErrBackup, err)
	}
	dir = filepath.Clean(dir)
	inside, stage := datadir.Restoring(dir)
	held, err := os.ReadDir(dir)
	switch {
	case err == nil:
		stage = inside
		for _, e := range held {
			if e.Name() != filepath.Base(inside) && e.Name() != "lost+found" {
				return r, fmt.Errorf("%s %w", dir, ErrNotEmpty)
			}
		}
	case !errors.Is(err, fs.ErrNotExist):
		return r, fmt.Errorf("nothing can be restored there: %w. Name a directory that is missing or empty with --data", err)
	}
	if _, there := os.Lstat(dir); err != nil && there == nil {
		return r, fmt.Errorf("nothing can be restored there: %s is a link to what is not there. Name a directory that is missing or empty with --data", dir)
	}
	if err := durable.MkdirAll(filepath.Dir(dir)); err != nil {
		return r, fmt.Errorf("nothing can be restored there: %w. Name a directory that is missing or empty with --data", err)
	}
	if err := os.Mkdir(stage, 0o700); errors.Is(err, fs.ErrExist) {
		return r, fmt.Errorf("%s exists: another restore is running, or one was interrupted; in that case remove it", stage)
	} else if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(stage)) }()
	if r.Backup, err = unpack(ctx, from, stage); err != nil {
		return r, err
	}
	if err := durable.MkdirAll(filepath.Join(stage, "blobs", "cas")); err != nil { // there may have been none
		return r, err
	}
	if err := errors.Join(putKeys(&r, keys, stage), putErasable(r.Backup, erasable, stage)); err != nil {
		return r, err
	}
	if r.Documents {
		if r.Lost, err = decryptDocuments(ctx, stage); err != nil {
			return r, err
		}
	}
	if r.Leaves > r.Records {
		return r, fmt.Errorf("%w: the ledger has %d leaves, the journal %d records", ErrBackup, r.Leaves, r.Records)
	}
	if r.Keys {
		if r.Health, err = Fsck(ctx, stage, nil); err != nil || !r.Health.OK && !r.Health.OnlyUnexplained() {
			return r, err
		}
		if r.Health.Records != r.Records || r.Health.Leaves != r.Leaves {
			return r, fmt.Errorf("%w: %d records and %d leaves, backup.json says %d and %d", ErrBackup, r.Health.Records, r.Health.Leaves, r.Records, r.Leaves)
		}
		r.Verified = true
	} else if err := ledger.CheckAhead(datadir.Ledger(stage), r.Records); err != nil {
		return r, err
	}
	if r.Documents { // a backup has no entries to find them by
		if _, err := sqlite.ReindexDocuments(ctx, datadir.DocumentsFile(stage)); err != nil {
			return r, err
		}
	}
	if stage == inside {
		return r, moveIn(stage, dir)
	}
	return r, commitDir(stage, dir)
}

// decryptDocuments makes the documents of a restored directory. A crash leaves a part of them in the
// stage.
func decryptDocuments(ctx context.Context, stage string) ([]LostDocuments, error) {
	keys, err := sqlite.OpenUserKeys(stage)
	if err != nil {
		return nil, err
	}
	from := filepath.Join(stage, encryptedDocuments)
	lost, err := sqlite.DecryptDocuments(ctx, from, datadir.DocumentsFile(stage), keys)
	if errors.Is(err, sqlite.ErrNoUserKey) {
		return nil, fmt.Errorf("%w: this copy is older than the backup, or of another directory: %w", ErrNoKeyCopy, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", encryptedDocuments, err)
	}
	if err := os.Remove(from); err != nil {
		return nil, err
	}
	for _, index := range projections {
		if !slices.ContainsFunc(lost, func(l LostDocuments) bool { return slices.Contains(l.Indices, index) }) {
			continue
		}
		if _, _, err := Reindex(ctx, stage, datadir.DocumentsAt{}, index); err != nil {
			return nil, err
		}
	}
	return lost, nil
}

// moveIn moves the stage into an existing directory. Crash: the stage still exists, so nothing
// starts on an incomplete directory.
func moveIn(stage, dir string) error {
	if err := syncBelow(stage); err != nil {
		return err
	}
	parts, err := os.ReadDir(stage)
	for _, e := range parts {
		if err == nil {
			err = durable.Rename(filepath.Join(stage, e.Name()), filepath.Join(dir, e.Name()))
			failpoint.Hit(failpoint.RestoreMoved)
		}
	}
	if err != nil { // nothing is left of it
		for _, e := range parts {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
		return err
	}
	return durable.SyncDir(dir)
}

// putKeys adds keys to a record that came without.
func putKeys(r *RestoreReport, keys, stage string) error {
	if keys == "" {
		return nil
	}
	if r.Keys {
		return errors.New("the backup has its own keys: leave --keys out")
	}
	c := copier{from: keys, to: datadir.Keys(stage)}
	entries, err := os.ReadDir(keys)
	for _, e := range entries {
		if err == nil && e.Type().IsRegular() {
			err = c.file(e.Name())
		}
	}
	r.Keys = true
	return err
}

// unpack writes the files of a backup, each checked against its digest, and no other.
func unpack(ctx context.Context, from, to string) (b Backup, err error) {
	f, err := os.Open(from) //nolint:gosec // G304: the operator names it
	if err != nil {
		return b, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return b, err
	}
	open := unpacked(tar.NewReader(f))
	if info.IsDir() {
		open = func(name string) (io.ReadCloser, error) {
			return os.Open(filepath.Join(from, filepath.FromSlash(name))) //nolint:gosec // G304: names were checked
		}
	}
	manifest, err := open(backupManifest)
	if err != nil {
		return b, fmt.Errorf("%w: %w", ErrBackup, err)
	}
	b, err = readManifest(manifest)
	if err := errors.Join(err, manifest.Close()); err != nil {
		return b, err
	}
	for _, f := range b.Files {
		in, err := open(f.Name)
		if err != nil {
			return b, fmt.Errorf("%w: %w", ErrBackup, err)
		}
		if err := errors.Join(ctx.Err(), f.unpack(in, to), in.Close()); err != nil {
			return b, err
		}
	}
	return b, nil
}

// unpacked opens the files of a backup in one file, which are there in order.
func unpacked(t *tar.Reader) func(name string) (io.ReadCloser, error) {
	return func(name string) (io.ReadCloser, error) {
		h, err := t.Next()
		if err != nil {
			return nil, fmt.Errorf("where %s should be: %w", name, err)
		}
		if h.Name != name || h.Typeflag != tar.TypeReg {
			return nil, fmt.Errorf("%q is where %s should be", h.Name, name)
		}
		return io.NopCloser(t), nil
	}
}

// manifestLimit bounds what is read of a backup.json, in bytes: a few million files.
const manifestLimit = 1 << 30

func readManifest(r io.Reader) (b Backup, err error) {
	raw, err := io.ReadAll(io.LimitReader(r, manifestLimit))
	if err != nil {
		return b, fmt.Errorf("%w: %s: %w", ErrBackup, backupManifest, err)
	}
	if err := intents.UnmarshalStrict(raw, &b); err != nil {
		return b, fmt.Errorf("%w: %s: %w", ErrBackup, backupManifest, err)
	}
	if b.Format != BackupFormat {
		return b, fmt.Errorf("%w: it has format %d, this program knows %d", ErrBackup, b.Format, BackupFormat)
	}
	for _, f := range b.Files {
		if !f.valid() {
			return b, fmt.Errorf("%w: %s names the file %q", ErrBackup, backupManifest, f.Name)
		}
	}
	return b, nil
}

// valid reports whether MakeBackup gives such a name, so that nothing is written anywhere else.
func (f BackupFile) valid() bool {
	if !fs.ValidPath(f.Name) || !filepath.IsLocal(filepath.FromSlash(f.Name)) {
		return false
	}
	top, rest, below := strings.Cut(f.Name, "/")
	if !below {
		return f.Name == encryptedDocuments
	}
	return rest != "" && slices.Contains([]string{"ledger", "journal", "blobs", "keys"}, top)
}

func (f BackupFile) unpack(r io.Reader, to string) error {
	got, err := receive(r, filepath.Join(to, filepath.FromSlash(f.Name)))
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrBackup, f.Name, err)
	}
	if got.SHA256 != f.SHA256 {
		return fmt.Errorf("%w: %s is not what was written: it has digest %s, not %s", ErrBackup, f.Name, got.SHA256, f.SHA256)
	}
	return nil
}
