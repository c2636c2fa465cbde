package policies

import (
	"context"
	"sync"
	"sync/atomic"
)

// Proof tries an engine before it is put in force (DESIGN §4: the self-proof).
type Proof func(ctx context.Context, candidate *Engine) error

// Live is the engine in force. Readers never wait; a change replaces the whole
// engine or nothing.
type Live struct {
	engine atomic.Pointer[Engine]
	change sync.Mutex // one change at a time, so that none is lost
}

// NewLive puts a first engine in force.
func NewLive(e *Engine) *Live {
	l := &Live{}
	l.engine.Store(e)
	return l
}

// Engine in force now. Take it once per decision: two calls may differ.
func (l *Live) Engine() *Engine { return l.engine.Load() }

// SetData puts new directory data in force under the same tree.
func (l *Live) SetData(ctx context.Context, d Data) error {
	l.change.Lock()
	defer l.change.Unlock()
	next, err := l.Engine().WithData(ctx, d)
	if err != nil {
		return err
	}
	l.engine.Store(next)
	return nil
}

// Replace compiles a tree, gives it the data in force, has it proved and swaps.
// On an error the old engine stays.
func (l *Live) Replace(ctx context.Context, source Source, prove Proof) (*Engine, error) {
	next, err := New(ctx, source)
	if err != nil {
		return nil, err
	}
	l.change.Lock()
	defer l.change.Unlock()
	if next, err = next.WithData(ctx, l.Engine().Data()); err != nil {
		return nil, err
	}
	if err := prove(ctx, next); err != nil {
		return nil, err
	}
	l.engine.Store(next)
	return next, nil
}

// Follow reloads the tree from a directory whenever it changes, until ctx ends.
// Every attempt is reported: the engine now in force, or why the old one stays.
// A tree whose digest is in force already is no change.
func (l *Live) Follow(ctx context.Context, dir string, prove Proof, report func(*Engine, error)) error {
	return Watch(ctx, dir, func() {
		source, err := ReadDir(dir)
		if err != nil {
			report(nil, err)
			return
		}
		if source.Digest() == l.Engine().Digest() {
			return
		}
		report(l.Replace(ctx, source, prove))
	})
}
