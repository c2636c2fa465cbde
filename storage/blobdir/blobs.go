// Package blobdir stores blobs in a directory of one machine.
//
//	scopes/<tenant>/<scope>/<id>   temporary files of a step
//	cas/<tenant>/<digest>          blobs of a tenant
//	partial/                       what is being written
//
// Names are those of storage.BlobName and storage.FileName: no name that a caller
// chooses is ever part of a path. Directories are 0700, files 0600.
//
// A file is written in partial/, synced, renamed into place, and its directory is
// synced before the call returns. A crash before the rename leaves a partial
// file, which the next Sweep removes; a crash after it leaves the whole file.
//
// One process at a time uses a directory.
package blobdir

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"aob.dev/writ/internal/durable"
	"aob.dev/writ/internal/failpoint"
	"aob.dev/writ/storage"
)

// Blobs is storage.Blobs in a directory. Safe for concurrent use.
type Blobs struct {
	storage.NamedBlobs
	partial string

	// place lets files be put together, and lets one be removed only while none is:
	// a directory must not vanish under a rename.
	place sync.RWMutex

	active sync.Map // names in partial that are being written here
}

var (
	_ storage.Blobs     = (*Blobs)(nil)
	_ storage.Collector = (*Blobs)(nil)
)

// Open opens or creates the directory.
func Open(dir string) (*Blobs, error) {
	b := &Blobs{partial: filepath.Join(dir, "partial")}
	kept, steps := objects{b, filepath.Join(dir, "cas")}, objects{b, filepath.Join(dir, "scopes")}
	for _, d := range []string{kept.root, steps.root, b.partial} {
		if err := durable.MkdirAll(d); err != nil {
			return nil, fmt.Errorf("open blobs: %w", err)
		}
	}
	b.NamedBlobs = storage.NamedBlobs{Kept: kept, Steps: steps}
	return b, nil
}

// Close does nothing: what was written is durable already.
func (*Blobs) Close() error { return nil }

// objects are the files below a directory, by their paths from there.
type objects struct {
	in   *Blobs
	root string
}

func (o objects) path(name string) string { return filepath.Join(o.root, filepath.FromSlash(name)) }

// Put receives r and puts it in its place for good; see storage.Objects.
func (o objects) Put(ctx context.Context, r io.Reader, name func(storage.Digest) string) (d storage.Digest, size int64, err error) {
	partial := o.in.begin()
	defer o.in.discard(partial)
	size, d, err = durable.Receive(partial, storage.UntilDone(ctx, r))
	if err != nil {
		return d, size, err
	}
	path := o.path(name(d))
	dir := filepath.Dir(path)
	o.in.place.RLock()
	defer o.in.place.RUnlock()
	if err := durable.MkdirAll(dir); err != nil {
		return d, size, err
	}
	failpoint.Hit(failpoint.BlobReceived)
	if err := os.Rename(partial, path); err != nil { // synced below, after its failpoint
		return d, size, err
	}
	failpoint.Hit(failpoint.BlobRenamed)
	if err := durable.SyncDir(dir); err != nil {
		return d, size, err
	}
	failpoint.Hit(failpoint.BlobKept)
	return d, size, nil
}

// Get opens a file; see storage.Objects.
func (o objects) Get(_ context.Context, name string, d storage.Digest) (io.ReadCloser, int64, error) {
	f, err := os.Open(o.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, storage.ErrNotFound
	}
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return &checkedFile{storage.CheckedBlob(f, d, info.Size()), f}, info.Size(), nil
}

// List the files below a directory; see storage.Objects. One that goes meanwhile is
// left out.
func (o objects) List(ctx context.Context, prefix string) (out []storage.ObjectInfo, err error) {
	err = filepath.WalkDir(o.path(prefix), func(path string, e fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil && !e.IsDir() {
			var info fs.FileInfo
			if info, err = e.Info(); err == nil {
				name, _ := filepath.Rel(o.root, path) // it is below
				out = append(out, storage.ObjectInfo{Name: filepath.ToSlash(name), Size: info.Size(), At: info.ModTime()})
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list blobs: %w", err)
	}
	return out, nil
}

// Remove a file, and its directory with the last one; see storage.Objects. A crash
// may leave an empty directory.
func (o objects) Remove(_ context.Context, name string, before time.Time) (bool, error) {
	path := o.path(name)
	o.in.place.Lock()
	defer o.in.place.Unlock()
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !before.IsZero() && info.ModTime().After(before) {
		return false, nil
	}
	if err == nil {
		err = durable.Remove(path)
	}
	if err != nil {
		return false, fmt.Errorf("remove blob: %w", err)
	}
	_ = os.Remove(filepath.Dir(path)) // fails while it holds others
	return true, nil
}

// begin names a path in partial/ that Sweep leaves alone until discard.
func (b *Blobs) begin() string {
	name := rand.Text()
	b.active.Store(name, true)
	return filepath.Join(b.partial, name)
}

// discard ends what begin began and removes the rest. What cannot be
// removed now is left to Sweep.
func (b *Blobs) discard(path string) {
	_ = os.RemoveAll(path)
	b.active.Delete(filepath.Base(path))
}

// checkedFile is checked while it is read from beginning to end. A caller that
// seeks has digests of parts: from then on nothing is checked here.
type checkedFile struct {
	io.ReadCloser
	f *os.File
}

// Seek implements io.Seeker.
func (c *checkedFile) Seek(offset int64, whence int) (int64, error) {
	c.ReadCloser = c.f
	return c.f.Seek(offset, whence)
}

// Sweep removes old scopes and what a crash left; see storage.Blobs. It continues
// after an error and returns all of them.
func (b *Blobs) Sweep(ctx context.Context, age time.Duration) (int, error) {
	partial, err := b.sweepPartial(ctx)
	scopes, failed := b.NamedBlobs.Sweep(ctx, age)
	return partial + scopes, errors.Join(err, failed)
}

// sweepPartial removes what no call of this process is working on.
func (b *Blobs) sweepPartial(ctx context.Context) (removed int, failed error) {
	entries, err := os.ReadDir(b.partial)
	if err != nil {
		return 0, err
	}
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return removed, errors.Join(failed, err)
		}
		if _, busy := b.active.Load(e.Name()); busy {
			continue
		}
		path := filepath.Join(b.partial, e.Name())
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			continue // listed while it was written, in its place by now
		}
		err := os.RemoveAll(path)
		if err == nil {
			removed++
		}
		failed = errors.Join(failed, err)
	}
	return removed, failed
}
