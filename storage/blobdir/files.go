package blobdir

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// begin names a path in partial/ that Sweep leaves alone until discard.
func (b *Blobs) begin() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	name := rand.Text()
	b.active[name] = true
	return filepath.Join(b.partial, name)
}

// discard ends what begin began and removes what is still there. What cannot be
// removed now is left to Sweep.
func (b *Blobs) discard(path string) {
	_ = os.RemoveAll(path)
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.active, filepath.Base(path))
}

// checkedFile is checked while it is read from its beginning to its end. Whoever
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

// Sweep removes old scopes and what a crash left; see storage.Blobs. It goes on
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
		b.mu.Lock()
		busy := b.active[e.Name()]
		b.mu.Unlock()
		if busy {
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
