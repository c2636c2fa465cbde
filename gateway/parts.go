package gateway

import (
	"container/list"
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

// checked remembers the sums of the artifacts read last. Safe for concurrent use.
type checked struct {
	work chan struct{} // one for each artifact that is being read whole

	mu     sync.Mutex // guards what follows
	byName map[string]*list.Element
	recent *list.List // of *known; front: read last
	parts  int
}

// known is an artifact whose sums are there, or about to be.
type known struct {
	name string
	done chan struct{} // closed when sums or err is set
	sums sums
	err  error
}

func newChecked() *checked {
	return &checked{work: make(chan struct{}, runtime.GOMAXPROCS(0)), byName: map[string]*list.Element{}, recent: list.New()}
}

// sumsOf an artifact: remembered, or taken by reading all of it. However many ask
// at once, it is read once.
func (k *checked) sumsOf(ctx context.Context, name string, open func() (io.ReadCloser, int64, error)) (sums, error) {
	for {
		k.mu.Lock()
		e, ok := k.byName[name]
		if !ok {
			e = k.recent.PushFront(&known{name: name, done: make(chan struct{})})
			k.byName[name] = e
		}
		k.recent.MoveToFront(e)
		a := e.Value.(*known) //nolint:forcetypeassert // the list holds nothing else
		k.mu.Unlock()
		if !ok {
			k.take(ctx, a, open)
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

// take computes the sums. After a failure the entry is removed.
func (k *checked) take(ctx context.Context, a *known, open func() (io.ReadCloser, int64, error)) {
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
	if a.err != nil {
		k.forget(a.name)
		return
	}
	k.parts += len(a.sums.of)
	for k.parts > maxParts && k.recent.Len() > 1 {
		last := k.recent.Back().Value.(*known) //nolint:forcetypeassert // the list holds nothing else
		select {
		case <-last.done:
			k.parts -= len(last.sums.of)
			k.forget(last.name)
		default:
			return // it is being read; it makes room when it is done
		}
	}
}

// forget an artifact. The lock must be held.
func (k *checked) forget(name string) {
	k.recent.Remove(k.byName[name])
	delete(k.byName, name)
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
