package node

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// settle gives a finished directory its name, for good.
func settle(from, to string) error {
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		return syncDir(path)
	})
	if err != nil {
		return err
	}
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return syncDir(filepath.Dir(to))
}

func syncDir(dir string) error {
	d, err := os.Open(dir) //nolint:gosec // G304: the operator names it
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// pack puts a finished directory into one file, backup.json first.
func pack(ctx context.Context, dir, to string, b Backup) (err error) {
	part := to + ".part"
	out, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // G304: the operator names it
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(part) // the error that counts is the other
		}
	}()
	w := tar.NewWriter(out)
	for _, f := range append([]BackupFile{{Name: backupManifest}}, b.Files...) {
		if err = errors.Join(ctx.Err(), packFile(w, dir, f.Name, b)); err != nil {
			return errors.Join(err, out.Close())
		}
	}
	if err = errors.Join(w.Close(), out.Sync(), out.Close()); err != nil {
		return err
	}
	return settleFile(part, to)
}

func settleFile(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return syncDir(filepath.Dir(to))
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
