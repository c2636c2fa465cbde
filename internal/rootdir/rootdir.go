// Package rootdir reads a directory of texts that others will see. Only regular files that are in
// the directory itself are read: no link leads out of it, or to another file in it, and no pipe or
// device is opened.
package rootdir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
)

// Dir is such a directory. It implements fs.FS and is safe for concurrent use.
type Dir struct{ root *os.Root }

// ErrNotPlain refuses a file that is neither regular nor a directory, or is reached by a link.
var ErrNotPlain = errors.New("is no regular file of the directory, or a link leads to it: put a copy of the file there")

// Open opens a directory, possibly through a link.
func Open(dir string) (*Dir, error) {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() { // a pipe would be waited for
		return nil, &fs.PathError{Op: "open", Path: dir, Err: syscall.ENOTDIR}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &Dir{root}, nil
}

// Close closes the directory; files that are open stay so.
func (d *Dir) Close() error { return d.root.Close() }

// Open implements fs.FS.
func (d *Dir) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	at, seen, err := d.find(name)
	if err != nil {
		return nil, err
	}
	f, err := d.root.OpenFile(at, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !os.SameFile(seen, info) {
		err = notPlain(name) // put there in between
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// mounted is where Kubernetes puts the files of a mounted map: it makes a link to
// ..data/<name> for each name, and ..data is a link to a directory beside it.
const mounted = "..data"

// find resolves a name to its path and file info.
func (d *Dir) find(name string) (at string, info fs.FileInfo, err error) {
	parts := strings.Split(name, "/")
	if link, err := d.root.Readlink(parts[0]); err == nil {
		held, linked := d.root.Readlink(mounted)
		if link != mounted+"/"+parts[0] || linked != nil || !strings.HasPrefix(held, "..") || strings.Contains(held, "/") || held == ".." {
			return "", nil, notPlain(name)
		}
		at = held
	}
	for _, part := range parts {
		at = path.Join(at, part)
		if info, err = d.root.Lstat(at); err != nil {
			return "", nil, err
		}
		if !info.IsDir() && !info.Mode().IsRegular() {
			return "", nil, notPlain(name)
		}
	}
	return at, info, nil
}

func notPlain(name string) error { return fmt.Errorf("%s %w", name, ErrNotPlain) }
