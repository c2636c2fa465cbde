package blobdir

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"aob.dev/writ/storage"
)

// received is a complete, synced file in partial/.
type received struct {
	path   string
	digest string // hex
	size   int64
}

// receive streams r into partial/. On an error nothing is left.
func (b *Blobs) receive(ctx context.Context, r io.Reader) (p received, err error) {
	p.path = b.begin()
	defer func() {
		if err != nil {
			b.discard(p.path)
		}
	}()
	f, err := os.OpenFile(p.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return p, err
	}
	h := sha256.New()
	p.size, err = io.Copy(io.MultiWriter(f, h), storage.UntilDone(ctx, r))
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return p, err
	}
	p.digest = hex.EncodeToString(h.Sum(nil))
	return p, nil
}

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

// checkedFile verifies the digest of a file while it is read to its end.
type checkedFile struct {
	f     *os.File
	h     hash.Hash
	want  string // hex
	moved bool   // read from elsewhere than where it was: whoever moved it has digests of parts
}

func openChecked(path, digest string) (io.ReadCloser, int64, error) {
	f, err := os.Open(path) //nolint:gosec // G304: made of hashes
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
	return &checkedFile{f: f, h: sha256.New(), want: digest}, info.Size(), nil
}

func (c *checkedFile) Read(p []byte) (int, error) {
	n, err := c.f.Read(p)
	if !c.moved {
		c.h.Write(p[:n])
	}
	if errors.Is(err, io.EOF) && !c.moved {
		if got := hex.EncodeToString(c.h.Sum(nil)); got != c.want {
			return n, fmt.Errorf("blob sha256:%s is damaged: it has digest %s", c.want, got)
		}
	}
	return n, err
}

// Seek implements io.Seeker. After it nothing is checked here.
func (c *checkedFile) Seek(offset int64, whence int) (int64, error) {
	c.moved = true
	return c.f.Seek(offset, whence)
}

func (c *checkedFile) Close() error { return c.f.Close() }

// find returns the name of a file of a scope and the digest in it. A scope has a
// handful of files.
func find(dir, id string) (name, digest string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", "", err
	}
	for _, e := range entries {
		if digest, ok := strings.CutPrefix(e.Name(), id+"."); ok {
			return e.Name(), digest, nil
		}
	}
	return "", "", storage.ErrNotFound
}
