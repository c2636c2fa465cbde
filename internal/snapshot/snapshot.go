// Package snapshot keeps what a router knows of its log in a file beside the journal,
// so that it opens with that and reads only the records behind it. The file follows
// from the records: whoever doubts it leaves it out, and reads them all.
//
// It is the index of the journal, the state, and in its last line a compact JWS by the
// router's key over the digest of both and where in which log they stand.
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
	"aob.dev/writ/storage/sqlite"
)

// Fold is what follows from the records before a position. One goroutine changes it.
type Fold struct {
	State *state.State
	Index *sqlite.Index
}

// NewFold is that of no records.
func NewFold() *Fold { return &Fold{state.New(), sqlite.NewIndex()} }

// Observe takes the next record.
func (f *Fold) Observe(e storage.Entry) {
	f.State.Observe(e)
	f.Index.Observe(e)
}

// Next is the position after the last record that it has seen.
func (f *Fold) Next() int64 { return f.Index.Next() }

// Digest is that of a snapshot of it.
func (f *Fold) Digest() (string, error) {
	h := sha256.New()
	err := f.write(h)
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), err
}

func (f *Fold) write(w io.Writer) error {
	if err := f.Index.Write(w); err != nil {
		return err
	}
	_, err := f.State.Snapshot(w)
	return err
}

// claims of the signature.
type claims struct {
	Origin   string        `json:"origin"`   // of the log
	Position int64         `json:"position"` // after the last record
	Record   string        `json:"record"`   // digest of that
	Rules    intents.Rules `json:"rules"`
	Digest   string        `json:"digest"` // of what stands before the signature
	Build    string        `json:"build"`  // digest of the program: another one may fold otherwise
}

// Write replaces the snapshot with one of a fold, of which last is the last record. It
// is durable when Write returns; a crash leaves the one before.
func Write(path string, f *Fold, last storage.Record, router intents.Signer) (*Snapshot, error) {
	program, err := build()
	if err != nil {
		return nil, err
	}
	s := &Snapshot{Next: f.Next(), Signer: router.KID}
	return s, durable.Stream(path, func(w io.Writer) error {
		h := sha256.New()
		if err := f.write(io.MultiWriter(w, h)); err != nil {
			return err
		}
		s.Digest = "sha256:" + hex.EncodeToString(h.Sum(nil))
		token, err := intents.SignCompact(router, intents.TypSnapshot, claims{
			Origin: f.State.Origin(), Position: f.Next(), Record: last.Digest(), Rules: f.State.View().Rules(), Digest: s.Digest, Build: program,
		})
		if err == nil {
			_, err = io.WriteString(w, token)
		}
		return err
	})
}

// Snapshot is one that was written or read.
type Snapshot struct {
	Next   int64  // position after the last record that it has seen
	Digest string // of the fold
	Signer string // kid: to be asked for again once the records behind it are known

	content []byte
	first   *Fold // that Fold gives first
}

// Read a snapshot of the log that records are of, made by this program and signed by a
// key of its router. The error is fs.ErrNotExist where there is none; any other says
// why it is left out.
func Read(ctx context.Context, path string, records storage.Records) (*Snapshot, error) {
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
	s := &Snapshot{Next: c.Position, Digest: c.Digest, content: content}
	f, err := s.Fold()
	if err != nil {
		return nil, err
	}
	if err := s.verify(token, f); err != nil {
		return nil, err
	}
	s.first = f
	return s, ofLog(ctx, records, f, c)
}

// verify that a key of the router has signed it, by the key set that the root key has
// signed.
func (s *Snapshot) verify(token string, f *Fold) error {
	var signed claims
	key, err := intents.OpenCompact(token, intents.TypSnapshot, intents.KeysFunc(f.State.View().Key), &signed)
	switch {
	case err != nil:
		return err
	case key.Role != intents.RoleRouter:
		return fmt.Errorf("the key of a %s has signed it", key.Role)
	case signed.Position != f.Next() || signed.Position != f.State.Next() || signed.Origin != f.State.Origin() || signed.Rules != f.State.View().Rules():
		return errors.New("it is another than it says")
	}
	s.Signer = key.KID
	return nil
}

// ofLog: the records have the same genesis, and the same record where the fold ends.
func ofLog(ctx context.Context, records storage.Records, f *Fold, c claims) error {
	origin, err := originOf(ctx, records)
	if err != nil {
		return err
	}
	if origin != f.State.Origin() {
		return errors.New("it is of another log")
	}
	last, err := records.Get(ctx, c.Position-1)
	if errors.Is(err, storage.ErrNotFound) {
		return errors.New("it knows records that the journal has not")
	}
	if err == nil && last.Digest() != c.Record {
		err = errors.New("the journal has another record where it ends")
	}
	return err
}

// originOf is the log's origin, which names its root key.
func originOf(ctx context.Context, records storage.Records) (string, error) {
	first, err := records.Get(ctx, 0)
	if err != nil {
		return "", err
	}
	s := state.New()
	s.Observe(state.EntryOf(first))
	return s.Origin(), s.Err()
}

// Fold gives what it says; each is its caller's own.
func (s *Snapshot) Fold() (f *Fold, err error) {
	if f, s.first = s.first, nil; f != nil {
		return f, nil
	}
	r := bytes.NewReader(s.content)
	index, err := sqlite.ReadIndex(r)
	if err != nil {
		return nil, err
	}
	f = &Fold{Index: index}
	if f.State, err = state.Open(r); err != nil {
		return nil, err
	}
	return f, nil
}

// Forget what Fold reads; what the snapshot says of itself stays.
func (s *Snapshot) Forget() { s.content, s.first = nil, nil }

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
