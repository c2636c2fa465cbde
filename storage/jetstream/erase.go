package jetstream

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"aob.dev/writ/internal/failpoint"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/internal/codec"
	"aob.dev/writ/storage/internal/group"
	"aob.dev/writ/storage/internal/judge"
)

// ErrClosed is the error of every call after Close.
var ErrClosed = group.ErrClosed

// Erase takes parts of records away; see storage.Eraser and the package comment.
func (j *Journal) Erase(ctx context.Context, what ...storage.Erasure) error {
	if len(what) == 0 {
		return nil
	}
	return j.DoAlone(ctx, func(ctx context.Context) error {
		if err := j.Fresh(ctx); err != nil { // another router may have written the record
			return err
		}
		for _, x := range what {
			if err := j.erase(ctx, x); err != nil {
				return fmt.Errorf("erase record %d: %w", x.Position, err)
			}
		}
		return nil
	})
}

// erase is run by the writer.
func (j *Journal) erase(ctx context.Context, x storage.Erasure) error {
	for {
		seq := j.lastSeq()
		m, g, err := j.group(ctx, x.Position)
		if err != nil {
			return err
		}
		changed, err := without(&g.entries[x.Position-g.First], x.Parts)
		if err != nil {
			return err
		}
		if !changed {
			return j.overwrite(ctx, m.place)
		}
		// A crash after this leaves the old bytes: erasing again overwrites them.
		data := g.encode()
		stored, err := j.store(ctx, erasedSubject(m.place), m.router, data, seq)
		if errors.Is(err, errBehind) {
			continue
		}
		if err != nil {
			return err
		}
		failpoint.Hit(failpoint.JournalErased)
		if err := j.apply(ctx, message{seq: stored, place: m.place, erased: true, data: data}); err != nil {
			return err
		}
		return j.overwrite(ctx, m.place)
	}
}

func without(e *storage.Entry, parts []string) (changed bool, err error) {
	for _, name := range parts {
		if _, there := e.Record.Parts[name]; there && len(e.Record.Salts[name]) != codec.DigestSize {
			return false, fmt.Errorf("part %q has no salt: its digest would tell what it was", name)
		}
	}
	e.Record, changed = e.Record.Without(parts...)
	_, _, err = judge.Prove(*e)
	return changed, err
}

func (j *Journal) lastSeq() uint64 {
	j.Mu.RLock()
	defer j.Mu.RUnlock()
	return j.index.Seq
}

// overwrite overwrites the old messages of a group: the one at its place, and those of
// erasures before the last. Another process may do the same.
func (j *Journal) overwrite(ctx context.Context, place uint64) error {
	subject := erasedSubject(place)
	last, err := j.stream.GetLastMsgForSubject(ctx, subject)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil // nothing was erased from it
	}
	if err != nil {
		return err
	}
	for old := place; old < last.Sequence; {
		if err := j.stream.SecureDeleteMsg(ctx, old); err != nil {
			if _, again := j.stream.GetMsg(ctx, old); !errors.Is(again, jetstream.ErrMsgNotFound) {
				return err
			}
		}
		next, err := j.stream.GetMsg(ctx, old+1, jetstream.WithGetMsgSubject(subject))
		if err != nil {
			return err
		}
		old = next.Sequence
	}
	failpoint.Hit(failpoint.JournalEmptied)
	return nil
}
