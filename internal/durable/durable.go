// Package durable writes files that must survive a power cut: written under
// another name, synced, renamed, and the directory synced. Nothing else in a data
// directory is written by hand; databases and the ledger's tree sync by themselves.
package durable

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// partSuffix marks a file being written. A file with it belongs to a write that was interrupted or
// is running.
const partSuffix = ".part"

// Write replaces a file in one step, mode 0600. It is durable when Write returns;
// a crash in it leaves the file as it was, or as it is to be, and perhaps a part
// under another name that the next Write replaces. One writer at a time.
func Write(path string, content []byte) error {
	return Stream(path, func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
}

// ErrNoFile reports that a device, a pipe, a link or a directory is at the place of a file: the
// file would replace it, and replacing /dev/null is never intended.
var ErrNoFile = errors.New("is no regular file, and is not replaced by one: name another")

// Stream is Write for data that is not in memory. If write fails, the file is unchanged, and no
// part is left.
func Stream(path string, write func(io.Writer) error) error {
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s %w", path, ErrNoFile)
	}
	part := path + partSuffix
	if err := os.Remove(part); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := create(part, write); err != nil {
		return err
	}
	return Rename(part, path)
}

// New writes a file that must not be there yet, mode 0600: the error is
// fs.ErrExist if it is. A crash may leave the file,
// although its owner got no answer.
func New(path string, content []byte) error {
	err := create(path, func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
	if err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// Receive writes what r yields to a file that must not be there yet, mode 0600, and syncs
// the content but not the name. It returns the size and the SHA-256. After an error no
// file is left.
func Receive(path string, r io.Reader) (size int64, sum [sha256.Size]byte, err error) {
	h := sha256.New()
	err = create(path, func(w io.Writer) (err error) {
		size, err = io.Copy(io.MultiWriter(w, h), r)
		return err
	})
	copy(sum[:], h.Sum(nil))
	return size, sum, err
}

// create makes a file whose content is synced; its name is not.
func create(path string, write func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // G304: the caller names it
	if err != nil {
		return err
	}
	if err = write(f); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}

// Rename gives something whole and synced its name, for good.
func Rename(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(to))
}

// Remove a file for good; one that is not there is no error.
func Remove(path string) error {
	err := os.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// MkdirAll makes a directory and those above it, mode 0700: each new one is
// synced into the one above it.
func MkdirAll(path string) error {
	err := os.Mkdir(path, 0o700)
	if errors.Is(err, fs.ErrNotExist) {
		if err := MkdirAll(filepath.Dir(path)); err != nil {
			return err
		}
		err = os.Mkdir(path, 0o700)
	}
	if errors.Is(err, fs.ErrExist) {
		info, err := os.Stat(path)
		if err == nil && !info.IsDir() {
			err = &fs.PathError{Op: "mkdir", Path: path, Err: syscall.ENOTDIR}
		}
		return err
	}
	if err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// SyncDir makes the names in a directory durable.
func SyncDir(dir string) error {
	d, err := os.Open(dir) //nolint:gosec // G304: the caller names it
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// WriteJSON is Write for a JSON document. It makes the directory of the file, too.
func WriteJSON(path string, v any) error {
	raw, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	if err := MkdirAll(filepath.Dir(path)); err != nil {
		return err
	}
	return Write(path, append(raw, '\n'))
}

// ReadJSON reads a document that WriteJSON wrote. If there is no such file, it returns false and
// leaves v unchanged.
func ReadJSON(path string, v any) (there bool, err error) { return read(path, v, false) }

// ReadExactJSON is ReadJSON, and refuses members that v does not have.
func ReadExactJSON(path string, v any) (there bool, err error) { return read(path, v, true) }

func read(path string, v any, exact bool) (there bool, err error) {
	raw, err := os.ReadFile(path) //nolint:gosec // G304: the caller names it
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err == nil && exact {
		dec := json.NewDecoder(bytes.NewReader(raw))
		dec.DisallowUnknownFields()
		err = dec.Decode(v)
	} else if err == nil {
		err = json.Unmarshal(raw, v)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return true, err
}
