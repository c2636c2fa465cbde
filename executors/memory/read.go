package memory

import (
	"context"
	"encoding/json"
	"strings"

	"aob.dev/writ/executors"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// read gives one memory by its full key. A memory that the caller may not read is
// reported as missing; a task that asks beyond its step gets TASK_SCOPE. With Confirm
// the manager confirms that it has read, and the lock is released.
func (m *memory) read(ctx context.Context, o *executors.Order, args catalog.ReadMemory) (*executors.Result, error) {
	task := o.Ticket.Scope
	switch {
	case task != nil && !ofStep(o, args.Key):
		return nil, executors.Fail(intents.TaskScope, "a task reads its step's input and its own memories only")
	case args.Confirm && (task != nil || o.Context.PlanID == ""):
		return nil, executors.Fail(intents.MalformedArgs, "only the manager confirms")
	}
	r, _, err := m.get(ctx, o.Ticket.Actor.Tenant, args.Key)
	if err != nil {
		return nil, executors.Store(err)
	}
	if r.Key != args.Key || isLock(r) || r.expired(m.Now()) || !visible(o, r) {
		return nil, executors.Store(storage.ErrNotFound)
	}
	if task == nil && o.Context.PlanID == "" && len(r.Text) >= storage.InlineLimit {
		return nil, executors.Fail(intents.OversizedOutput, "the memory is too large for an answer, and without a plan there is no file for it")
	}
	scope := storage.Scope{Tenant: o.Ticket.Actor.Tenant, Plan: o.Context.PlanID}
	if task != nil {
		if scope, err = o.Scope(); err != nil {
			return nil, err
		}
	}
	data, ref, err := executors.Gate(ctx, m.Blobs, scope, executors.Content{JSON: json.RawMessage(r.Text)})
	if err != nil {
		return nil, err
	}
	if args.Confirm {
		if err := m.unlock(ctx, r); err != nil {
			return nil, executors.Store(err)
		}
	}
	return &executors.Result{Value: catalog.ReadMemoryResult{Key: r.Key, Data: data, Reference: ref}}, nil
}

// isLock reports whether a document is not a memory: locks, and the mark that names
// the embedder, are in the same index.
func isLock(r record) bool { return strings.HasPrefix(r.ID, ownPrefix) }

// visible is the one rule of what an order may read, by key or by search: a task
// reads its step's input and its own memories; a manager or gateway reads those of
// its session, its user and its tenant.
func visible(o *executors.Order, r record) bool {
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

// ofStep reports whether the key is the input of the task's step, or was built for this
// task.
func ofStep(o *executors.Order, full string) bool {
	task := o.Ticket.Scope
	return full != "" && full == task.InputKey || strings.HasPrefix(full, key(o.Ticket.Actor.Tenant, o.Context.SessionID, task.Task, ""))
}
