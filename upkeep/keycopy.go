package upkeep

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/durable"
	"aob.dev/writ/internal/failpoint"
	"aob.dev/writ/storage/sqlite"
)

// KeyCopy describes the copy of the keys of erasable parts and of users' documents, which no backup has. There is one, in
// a place of its own: each replaces the one before, so that no key outlives its erasure there.
type KeyCopy struct {
	Format  int       `json:"format"`
	Origin  string    `json:"origin"`
	At      time.Time `json:"at"`
	Records int64     `json:"records"` // the keys of the records before this position are there
	Files   []string  `json:"files"`   // in order, as below the data directory
}

// keyCopyManifest is the first file of a copy, which is a tar file.
const keyCopyManifest = "keys.json"

// ErrNoKeyCopy says that a backup needs another copy of its keys.
var ErrNoKeyCopy = errors.New("the keys of its erasable parts are not in a backup: name the newest copy of them with --erasable FILE, as writ admin backup --erasable FILE made it")

// CopyKeys replaces the copy of these keys, after a backup.
//
// Crash: the copy is the old one or the new one, and perhaps a part beside it that the next call replaces.
func CopyKeys(ctx context.Context, dir, to string, now time.Time) (k KeyCopy, err error) {
	k = KeyCopy{Format: BackupFormat, At: now.UTC().Truncate(time.Millisecond)}
	if k.Origin, err = originOf(ctx, dir); err != nil {
		return k, err
	}
	records, err := sqlite.OpenRecords(ctx, datadir.Journal(dir)) // first: each record's key is there before it
	if err != nil {
		return k, err
	}
	k.Records = records.Next()
	if err := records.Close(); err != nil {
		return k, err
	}
	names, err := fs.Glob(os.DirFS(dir), sqlite.KeysName+"/[0-9]*[0-9]")
	if err != nil {
		return k, err
	}
	slices.Sort(names)
	if users := sqlite.KeysName + "/" + sqlite.UserKeysName; exists(dir, users) {
		names = append(names, users)
	}
	k.Files = names
	return k, durable.Stream(to, func(out io.Writer) error {
		manifest, err := json.Marshal(k)
		if err != nil {
			return err
		}
		w := tar.NewWriter(out)
		err = packed(w, keyCopyManifest, k.At, int64(len(manifest)), bytes.NewReader(manifest))
		for _, name := range names {
			if err := errors.Join(err, ctx.Err()); err != nil {
				return err
			}
			var keys []byte                                                                        // at once: a running process adds to the file
			if keys, err = os.ReadFile(filepath.Join(dir, filepath.FromSlash(name))); err == nil { //nolint:gosec // G304: below the data directory
				err = packed(w, name, k.At, int64(len(keys)), bytes.NewReader(keys))
			}
		}
		err = errors.Join(err, w.Close())
		failpoint.Hit(failpoint.CopyWritten)
		return err
	})
}

func exists(dir, name string) bool {
	_, err := os.Stat(filepath.Join(dir, filepath.FromSlash(name)))
	return err == nil
}

// putErasable adds the keys of a copy to a record that was restored.
func putErasable(b Backup, from, stage string) (err error) {
	if from == "" {
		return ErrNoKeyCopy
	}
	f, err := os.Open(from) //nolint:gosec // G304: the operator names it
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNoKeyCopy, err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	next := unpacked(tar.NewReader(f))
	k, err := readKeyManifest(next)
	switch {
	case err != nil:
		return err
	case k.Origin != b.Origin:
		return fmt.Errorf("%w: %s is of another log, %s", ErrNoKeyCopy, from, k.Origin)
	case k.Records < b.Records:
		return fmt.Errorf("%w: %s is older than the backup, of %s: it lacks keys, and has keys that may have been erased since", ErrNoKeyCopy, from, k.At.Format(time.RFC3339))
	}
	for _, name := range k.Files {
		in, err := next(name)
		if err != nil {
			return fmt.Errorf("%w: %s is damaged: %w", ErrNoKeyCopy, from, err)
		}
		if path.Dir(name) != sqlite.KeysName || !filepath.IsLocal(filepath.FromSlash(name)) {
			return fmt.Errorf("%w: %s names the file %q", ErrNoKeyCopy, from, name)
		}
		if _, err := receive(in, filepath.Join(stage, filepath.FromSlash(name))); err != nil {
			return fmt.Errorf("%w: %s: %w", ErrNoKeyCopy, from, err)
		}
		failpoint.Hit(failpoint.RestoreKeys)
	}
	return nil
}

func readKeyManifest(next func(string) (io.ReadCloser, error)) (k KeyCopy, err error) {
	in, err := next(keyCopyManifest)
	if err != nil {
		return k, fmt.Errorf("%w: it is none: %w", ErrNoKeyCopy, err)
	}
	raw, err := io.ReadAll(io.LimitReader(in, manifestLimit))
	if err == nil {
		err = intents.UnmarshalStrict(raw, &k)
	}
	if err == nil && k.Format != BackupFormat {
		err = fmt.Errorf("it has format %d, this program knows %d", k.Format, BackupFormat)
	}
	if err != nil {
		return k, fmt.Errorf("%w: %w", ErrNoKeyCopy, err)
	}
	return k, nil
}
