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

	"aob.dev/writ/internal/durable"
)

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
		err = w.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: info.Size(), ModTime: b.At, Format: tar.FormatPAX})
	}
	if err == nil {
		_, err = io.Copy(w, in)
	}
	if err != nil {
		err = fmt.Errorf("pack %s: %w", name, err)
	}
	return errors.Join(err, in.Close())
}
