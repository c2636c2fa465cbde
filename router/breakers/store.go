package breakers

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"aob.dev/writ/internal/durable"
	"aob.dev/writ/internal/failpoint"
)

// Read lists the breakers of a store as they were stored.
func Read(ctx context.Context, from durable.Store) (list []Breaker, err error) {
	if from == nil {
		return nil, nil
	}
	doc, err := from.Get(ctx)
	if err == nil && doc != nil {
		err = json.Unmarshal(doc, &list)
	}
	if err != nil {
		return nil, fmt.Errorf("breakers: %w", err)
	}
	return list, nil
}

// Sync stores counts that have changed; see Terms.Sync.
//
// Crash before it: what was counted since the last write is lost, so that a server that fails is
// called a few more times.
func (s *Set) Sync(ctx context.Context) {
	s.mu.Lock()
	dirty := s.dirty
	s.mu.Unlock()
	if dirty {
		s.save(ctx)
	}
}

// saveTime bounds a write: nobody waits longer for a store that is away.
const saveTime = 2 * time.Second

// save stores all breakers. What cannot be stored now, Sync stores later.
//
// Crash before it: the next process has the status of before. It calls a server that fails until
// the breaker opens again, or probes one that was well.
func (s *Set) save(ctx context.Context) {
	if s.store == nil {
		return
	}
	s.saving.Lock()
	defer s.saving.Unlock()
	s.mu.Lock()
	s.dirty = false
	s.mu.Unlock()
	doc, err := json.Marshal(s.List(""))
	if err == nil {
		failpoint.Hit(failpoint.BreakerChanged)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTime)
		defer cancel()
		err = s.store.Put(ctx, doc)
	}
	if err != nil {
		s.mu.Lock()
		s.dirty = true
		s.mu.Unlock()
		s.log.WarnContext(ctx, "breakers are stored later", slog.String("error", err.Error()))
	}
}
