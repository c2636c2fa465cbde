// Package snapshot stores a process's state of its log in a file, so that a start reads that and
// only the later records. The file is derived from the records: without it a start reads them all.
//
// It is the index of the journal, the state, and in its last line a compact JWS by the
// process's key over the digest of both, the log and their position in it.
package snapshot

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/durable"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// Index is a journal's in-memory index of its records.
type Index interface {
	// Next is the position after the last applied record.
	Next() int64
	// Write it. The same records give the same bytes.
	Write(w io.Writer) error
}

// Contents is the state derived from the records before a position. One goroutine changes it.
type Contents[I Index] struct {
	State *state.State
	Index I
}

// Next is the position after the last applied record.
func (f *Contents[I]) Next() int64 { return f.Index.Next() }

// Digest is that of a snapshot of it.
func (f *Contents[I]) Digest() (string, error) {
	h := sha256.New()
	err := f.write(h)
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), err
}

func (f *Contents[I]) write(w io.Writer) error {
	if err := f.Index.Write(w); err != nil {
		return err
	}
	_, err := f.State.Snapshot(w)
	return err
}

// claims of the signature.
type claims struct {
	Origin   string `json:"origin"`   // of the log
	Position int64  `json:"position"` // after the last record
	Record   string `json:"record"`   // digest of that
	Digest   string `json:"digest"`   // of everything before the signature
	Build    string `json:"build"`    // digest of the program: another one may apply records differently
}

// Write replaces the snapshot with one of contents, of which last is the last record. It
// is durable when Write returns; a crash leaves the one before.
func Write[I Index](path string, f *Contents[I], last storage.Record, by intents.Signer) (*Snapshot[I], error) {
	program, err := build()
	if err != nil {
		return nil, err
	}
	s := &Snapshot[I]{Next: f.Next(), Signer: by.KID}
	return s, durable.Stream(path, func(w io.Writer) error {
		h, size := sha256.New(), counter(0)
		if err := f.write(io.MultiWriter(w, h, &size)); err != nil {
			return err
		}
		s.Size = int64(size)
		s.Digest = "sha256:" + hex.EncodeToString(h.Sum(nil))
		token, err := intents.SignCompact(by, intents.TypSnapshot, claims{
			Origin: f.State.Origin(), Position: f.Next(), Record: last.Digest(), Digest: s.Digest, Build: program,
		})
		if err == nil {
			_, err = io.WriteString(w, token)
		}
		return err
	})
}

// counter counts bytes.
type counter int64

func (c *counter) Write(b []byte) (int, error) {
	*c += counter(len(b))
	return len(b), nil
}

// Snapshot is one that was written or read.
type Snapshot[I Index] struct {
	Next   int64  // position after the last applied record
	Digest string // of the contents
	Size   int64  // bytes
	Signer string // kid: to be asked for again once the records behind it are known

	content []byte
	index   ReadIndex[I]
	first   *Contents[I] // first result of Contents
	record  string       // digest of the last record
}

// ReadIndex reads an index that was written, and leaves the data after it.
type ReadIndex[I Index] func(*bytes.Reader) (I, error)

// Read a snapshot that this program has made and a key of a role of its log has signed. Check
// verifies that it belongs to the log's records. The error is fs.ErrNotExist if there is none; any
// other is the reason to discard it.
func Read[I Index](path string, role intents.Role, index ReadIndex[I]) (*Snapshot[I], error) {
	raw, err := os.ReadFile(path) //nolint:gosec // G304: of the data directory
	if err != nil {
		return nil, err
	}
	end := bytes.LastIndexByte(raw, '\n') + 1
	content, token := raw[:end], string(raw[end:])
	var c claims
	if err := intents.PeekClaims(token, &c); err != nil {
		return nil, err
	}
	program, err := build()
	switch {
	case err != nil:
		return nil, err
	case c.Build != program:
		return nil, errors.New("another build has made it")
	case intents.Digest(content) != c.Digest:
		return nil, errors.New("it is damaged")
	}
	s := &Snapshot[I]{Next: c.Position, Digest: c.Digest, Size: int64(len(raw)), content: content, index: index, record: c.Record}
	f, err := s.Contents()
	if err != nil {
		return nil, err
	}
	s.first = f
	return s, s.verify(token, role, f)
}

// verify that a key of the role has signed it, by the key set that the root key has signed.
func (s *Snapshot[I]) verify(token string, role intents.Role, f *Contents[I]) error {
	var signed claims
	key, err := intents.OpenCompact(token, intents.TypSnapshot, intents.KeysFunc(f.State.View().Key), &signed)
	switch {
	case err != nil:
		return err
	case key.Role != role:
		return fmt.Errorf("the key of a %s has signed it", key.Role)
	case signed.Position != f.Next() || signed.Position != f.State.Next() || signed.Origin != f.State.Origin():
		return errors.New("it is another than it says")
	}
	s.Signer = key.KID
	return nil
}

// Check that records are those of the log: the same genesis, and the same record where it
// ends.
func (s *Snapshot[I]) Check(ctx context.Context, records Getter) error {
	f, err := s.Contents()
	if err != nil {
		return err
	}
	s.first = f
	origin, err := originOf(ctx, records)
	if err != nil {
		return err
	}
	if origin != f.State.Origin() {
		return errors.New("it is of another log")
	}
	last, err := records.Get(ctx, s.Next-1)
	if errors.Is(err, storage.ErrNotFound) {
		return errors.New("it knows records that the journal has not")
	}
	if err == nil && last.Digest() != s.record {
		err = errors.New("the journal has another record where it ends")
	}
	return err
}

// Getter reads one record; storage.ErrNotFound where there is none.
type Getter interface {
	Get(ctx context.Context, position int64) (storage.Record, error)
}

// originOf is the log's origin, which names its root key.
func originOf(ctx context.Context, records Getter) (string, error) {
	first, err := records.Get(ctx, 0)
	if err != nil {
		return "", err
	}
	s := state.New()
	s.Observe(state.EntryOf(first))
	return s.Origin(), s.Err()
}

// Contents returns its contents; each result is its caller's own. A nil snapshot is of no records, and
// has no index.
func (s *Snapshot[I]) Contents() (f *Contents[I], err error) {
	if s == nil {
		return &Contents[I]{State: state.New()}, nil
	}
	if f, s.first = s.first, nil; f != nil {
		return f, nil
	}
	r := bytes.NewReader(s.content)
	f = &Contents[I]{}
	if f.Index, err = s.index(r); err != nil {
		return nil, err
	}
	if f.State, err = state.Open(r); err != nil {
		return nil, err
	}
	return f, nil
}

// Forget drops the data that Contents reads; the snapshot's metadata stays.
func (s *Snapshot[I]) Forget() { s.content, s.first = nil, nil }

// build is the digest of the program that runs, even if its file was replaced since.
var build = sync.OnceValues(func() (string, error) {
	f, err := os.Open("/proc/self/exe")
	if err != nil {
		path, err := os.Executable()
		if err != nil {
			return "", err
		}
		if f, err = os.Open(path); err != nil { //nolint:gosec // G304: ourselves
			return "", err
		}
	}
	h := sha256.New()
	_, err = io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), errors.Join(err, f.Close())
})
