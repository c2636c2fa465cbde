package memory

import (
	"context"
	"errors"
	"strings"
	"time"

	"aob.dev/writ/executors"
	"aob.dev/writ/intents"
	"aob.dev/writ/storage"
)

// Times of the advisory lock.
const (
	LockWait  = 5 * time.Second  // then MEMORY_LOCK
	LockLease = 30 * time.Second // the longest that a crashed holder blocks others
	lockPoll  = 50 * time.Millisecond
)

// The ids of documents that are not memories begin with a colon. No key does: it begins
// with the name of a tenant.
const (
	ownPrefix  = ":"
	lockPrefix = ownPrefix + "lock:"
)

// lockID names the lock: tenant (the store's), scope, owner and label, so
// that sessions of one user contend although their keys differ.
func lockID(r record) string {
	owner := ""
	switch r.Scope {
	case scopeSession:
		owner = r.Session
	case scopeUser:
		owner = r.User
	}
	return lockPrefix + strings.Join([]string{r.Scope, owner, r.label()}, ":")
}

// holder names a task within its tenant.
func holder(r record) string { return r.Session + ":" + r.Task }

// lock takes the lock of a memory for its task and returns how long it waited. While another task
// has the lock it waits up to LockWait, then it fails with MEMORY_LOCK. The lock is a
// compare-and-set on a document of its own, so it needs no transaction.
func (m *memory) lock(ctx context.Context, r record) (waited time.Duration, err error) {
	start := m.Now()
	for {
		held, err := m.tryLock(ctx, r)
		waited = m.Now().Sub(start)
		if err != nil || held {
			return max(waited, 0), err
		}
		if waited >= LockWait {
			return waited, executors.Fail(intents.MemoryLock, "another task holds the memory lock").WithEvent("memory.lock_timeout", map[string]any{
				"scope": r.Scope, "label": r.label(), "lock_wait_ms": waited.Milliseconds(),
			})
		}
		if err := m.Wait(ctx, min(lockPoll, LockWait-waited)); err != nil {
			return waited, err
		}
	}
}

// tryLock takes the lock if it is free, its lease has expired, or its holder is this task or an
// older task of the same place: a plan step, or an ask in it. A place has only one live task, so
// the older one has ended.
func (m *memory) tryLock(ctx context.Context, r record) (bool, error) {
	id := lockID(r)
	now := timestamp(m.Now())
	old, version, err := m.get(ctx, r.Tenant, id)
	if errors.Is(err, storage.ErrNotFound) {
		version, err = storage.NoPosition, nil
	}
	if err != nil {
		return false, err
	}
	taken := version != storage.NoPosition && old.LockedBy != "" && old.LockExpires != nil && old.LockExpires.After(now)
	mine := old.LockedBy == holder(r) || old.Session == r.Session && old.Plan == r.Plan && old.StepIndex == r.StepIndex && old.Ask == r.Ask
	if taken && !mine {
		return false, nil
	}
	ends := now.Add(LockLease)
	return m.swapLock(ctx, version, record{
		ID: id, Key: id, Tenant: r.Tenant, Session: r.Session, Task: r.Task, User: r.User, Scope: r.Scope, Plan: r.Plan,
		StepIndex: r.StepIndex, Ask: r.Ask, LockedBy: holder(r), LockExpires: &ends, CreatedAt: now, TTLAt: &ends,
	})
}

// unlock releases the lock of a memory, if its task still has it.
func (m *memory) unlock(ctx context.Context, r record) error {
	for {
		held, version, err := m.get(ctx, r.Tenant, lockID(r))
		if errors.Is(err, storage.ErrNotFound) || err == nil && held.LockedBy != holder(r) {
			return nil
		}
		if err != nil {
			return err
		}
		held.LockedBy = ""
		if done, err := m.swapLock(ctx, version, held); done || err != nil {
			return err
		}
	}
}

// swapLock writes the next version of a lock; false: another task was faster.
func (m *memory) swapLock(ctx context.Context, version int64, next record) (bool, error) {
	doc, err := next.document(version + 1)
	if err != nil {
		return false, err
	}
	err = m.Documents.Swap(ctx, next.Tenant, storage.IndexMemory, version, doc)
	if errors.Is(err, storage.ErrStale) {
		return false, nil
	}
	return err == nil, err
}
