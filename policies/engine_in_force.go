package policies

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Proof tests an engine before it is put in force: the self-proof.
type Proof func(ctx context.Context, candidate *Engine) error

// Live holds the engine in force. Readers never wait; a change replaces the whole engine or
// nothing.
type Live struct {
	engine atomic.Pointer[Engine]
	since  atomic.Pointer[time.Time]
	refuse atomic.Int64
	change sync.Mutex // serializes changes, so that none is lost
}

// NewLive puts a first engine in force.
func NewLive(e *Engine) *Live {
	l := &Live{}
	l.put(e)
	return l
}

// Engine in force now. Read it once per decision: two calls may differ.
func (l *Live) Engine() *Engine { return l.engine.Load() }

// Since is the time when the tree in force came into force.
func (l *Live) Since() time.Time { return *l.since.Load() }

// Refusals counts the trees that failed to replace the one in force.
func (l *Live) Refusals() int64 { return l.refuse.Load() }

// ReplaceTree compiles a tree, runs prove and swaps. On an error, including an older revision, the
// old engine stays.
func (l *Live) ReplaceTree(ctx context.Context, tree Tree, prove Proof) (next *Engine, err error) {
	defer func() {
		if err != nil {
			l.refuse.Add(1)
		}
	}()
	if next, err = NewTree(tree); err != nil {
		return nil, err
	}
	l.change.Lock()
	defer l.change.Unlock()
	if now := l.Engine(); next.revision < now.revision {
		return nil, fmt.Errorf("policies: revision %d after %d: %w", next.revision, now.revision, ErrOlder)
	}
	if err := prove(ctx, next); err != nil {
		return nil, err
	}
	l.put(next)
	return next, nil
}

func (l *Live) put(e *Engine) {
	now := time.Now()
	l.since.Store(&now)
	l.engine.Store(e)
}
