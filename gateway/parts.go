package gateway

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
)

// partSize is the size of a part of an artifact that has a digest of its own. A
// range is read, checked and sent in such parts, so that its cost follows its size.
const partSize = 64 << 10

// maxParts bounds the digests that are remembered, 32 bytes each: of 64 GiB.
const maxParts = 1 << 20

// sums are the digests of an artifact's parts, taken while all of it was checked.
type sums struct {
	of   [][sha256.Size]byte
	size int64
}

// checked remembers the sums of artifacts. Safe for concurrent use.
type checked struct {
	work chan struct{} // one for each artifact that is being read whole

	mu     sync.Mutex // guards what follows
	byName map[string]*known
	parts  int // of all that are done
}

// known is an artifact whose sums are there, or about to be.
type known struct {
	done chan struct{} // closed when sums or err is set
	sums sums
	err  error
}

func newChecked() *checked {
	return &checked{work: make(chan struct{}, runtime.GOMAXPROCS(0)), byName: map[string]*known{}}
}

// sumsOf an artifact: remembered, or taken by reading all of it. However many ask
// at once, it is read once.
func (k *checked) sumsOf(ctx context.Context, name string, open func() (io.ReadCloser, int64, error)) (sums, error) {
	for {
		k.mu.Lock()
		a, ok := k.byName[name]
		if !ok {
			a = &known{done: make(chan struct{})}
			k.byName[name] = a
		}
		k.mu.Unlock()
		if !ok {
			k.take(ctx, name, a, open)
			return a.sums, a.err
		}
		select {
		case <-a.done:
			if a.err == nil {
				return a.sums, nil
			}
			if ctx.Err() == nil && !errors.Is(a.err, context.Canceled) && !errors.Is(a.err, context.DeadlineExceeded) {
				return sums{}, a.err
			}
			if ctx.Err() != nil {
				return sums{}, ctx.Err()
			}
			// The request that was reading it was abandoned: this one reads it.
		case <-ctx.Done():
			return sums{}, ctx.Err()
		}
	}
}

// take computes the sums. After a failure they are not kept.
func (k *checked) take(ctx context.Context, name string, a *known, open func() (io.ReadCloser, int64, error)) {
	defer close(a.done)
	select {
	case k.work <- struct{}{}:
		a.sums, a.err = sumsOf(ctx, open)
		<-k.work
	case <-ctx.Done():
		a.err = ctx.Err()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.byName[name] != a: // forgotten meanwhile
	case a.err != nil:
		delete(k.byName, name)
	case k.parts+len(a.sums.of) > maxParts: // all of them can be taken again
		k.byName, k.parts = map[string]*known{name: a}, len(a.sums.of)
	default:
		k.parts += len(a.sums.of)
	}
}

// sumsOf reads an artifact to its end, where its store has checked its digest.
func sumsOf(ctx context.Context, open func() (io.ReadCloser, int64, error)) (s sums, err error) {
	r, size, err := open()
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	part := make([]byte, partSize)
	for {
		if err := ctx.Err(); err != nil {
			return s, err
		}
		n, err := io.ReadFull(r, part)
		if n > 0 {
			s.of, s.size = append(s.of, sha256.Sum256(part[:n])), s.size+int64(n)
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			if s.size != size {
				return s, fmt.Errorf("an artifact has %d bytes of %d", s.size, size)
			}
			return s, nil
		case err != nil:
			return s, err
		}
	}
}
