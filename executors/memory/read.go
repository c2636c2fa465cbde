package memory

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"aob.dev/writ/executors"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// read gives one memory by its full key. A memory that the caller may not read is
// reported as missing; a task that asks beyond its step gets TASK_SCOPE. With Confirm
// the manager confirms that it has read, and the lock is released.
func (m *memory) read(ctx context.Context, o *executors.Intent, args catalog.ReadMemory) (*executors.Result, error) {
	task := o.Ticket.Scope
	switch {
	case task != nil && !ofStep(o, args.Key):
		return nil, executors.Fail(intents.TaskScope, "a task reads its step's input and its own memories only")
	case args.Confirm && (task != nil || o.Context.PlanID == ""):
		return nil, executors.Fail(intents.MalformedArgs, "only the manager confirms")
	}
	r, err := m.readable(ctx, o, args.Key)
	if err != nil {
		return nil, err
	}
	data, ref, err := m.inlineOrFile(ctx, o, json.RawMessage(r.Text))
	if err != nil {
		return nil, err
	}
	if args.Confirm {
		if err := m.unlock(ctx, r); err != nil {
			return nil, executors.Store(err)
		}
	}
	return &executors.Result{Value: catalog.ReadMemoryResult{Key: r.Key, Data: data, Notes: r.Notes, Reference: ref}, Sources: r.Sources}, nil
}

// readable is a memory that the intent may read.
func (m *memory) readable(ctx context.Context, o *executors.Intent, key string) (record, error) {
	r, _, err := m.get(ctx, o.Ticket.Actor.Tenant, key)
	if err == nil && (r.Key != key || isLock(r) || r.expired(m.Now()) || !readable(o, r)) {
		err = storage.ErrNotFound
	}
	return r, executors.Store(err)
}

// inlineOrFile is a value as an answer has it: one that is large becomes a file of the plan.
func (m *memory) inlineOrFile(ctx context.Context, o *executors.Intent, value json.RawMessage) (json.RawMessage, *catalog.Reference, error) {
	scope := storage.Scope{Tenant: o.Ticket.Actor.Tenant, Plan: o.Context.PlanID}
	switch {
	case o.Ticket.Scope != nil:
		var err error
		if scope, err = o.Scope(); err != nil {
			return nil, nil, err
		}
	case scope.Plan == "" && len(value) >= storage.InlineLimit:
		return nil, nil, executors.Fail(intents.OversizedOutput, "the memory is too large for an answer, and without a plan there is no file for it")
	}
	return executors.InlineOrFile(ctx, o, m.Blobs, scope, executors.Content{JSON: value})
}

// isLock reports whether a document is not a memory: locks, and the mark that names
// the embedder, are in the same index.
func isLock(r record) bool { return strings.HasPrefix(r.ID, ownPrefix) }

// readable is the one rule of what an intent may read, by key or by search: a task
// reads its step's input and its own memories; a manager or gateway reads those of
// its session, its user and its tenant.
func readable(o *executors.Intent, r record) bool {
	if o.Ticket.Scope != nil {
		return ofStep(o, r.Key)
	}
	user := r.User == o.Ticket.Actor.UserID
	switch r.Scope {
	case scopeTenant:
		return true
	case scopeUser:
		return user
	default:
		return user && r.Session == o.Context.SessionID
	}
}

// ofStep reports whether the key is an input of the task's step, or was built for this
// task.
func ofStep(o *executors.Intent, full string) bool {
	task := o.Ticket.Scope
	return slices.Contains(task.Inputs(), full) || strings.HasPrefix(full, key(o.Ticket.Actor.Tenant, o.Context.SessionID, task.Task, ""))
}

// NamesBlob reports whether a memory of a tenant names a blob. Expired memories do not count.
func NamesBlob(ctx context.Context, docs storage.Documents, tenant, digest string, now time.Time) (bool, error) {
	if r, lags := docs.(storage.Refresher); lags {
		if err := r.Refresh(ctx, storage.IndexMemory); err != nil {
			return false, err
		}
	}
	q := storage.Query{Text: strings.TrimPrefix(digest, "sha256:"), Limit: 1000, Now: intents.FormatTime(now)}
	for {
		page, err := docs.Search(ctx, tenant, storage.IndexMemory, q)
		if err != nil {
			return false, err
		}
		for _, doc := range page.Documents {
			if strings.Contains(string(doc.Body), "cas://"+digest) {
				return true, nil
			}
		}
		if q.After = page.Cursor; q.After == "" {
			return false, nil
		}
	}
}
