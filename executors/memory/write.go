package memory

import (
	"bytes"
	"context"
	"encoding/json"
	"regexp"
	"time"

	"aob.dev/writ/executors"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/embed"
	"aob.dev/writ/internal/failpoint"
	"aob.dev/writ/storage"
)

// labels cannot contain the separator of key parts.
var labels = regexp.MustCompile(`^[a-z0-9_]{1,64}$`)

// write stores a step's result: validate, embed, lock, write, report. The lock stays
// until the manager confirms that it has read, or the lease ends. A crash between lock
// and write leaves a lock that the same task takes again.
func (m *memory) write(ctx context.Context, o *executors.Intent, args catalog.WriteMemory) (*executors.Result, error) {
	if args.Scope == catalog.ScopeMoment {
		return m.writeMoment(ctx, o, args)
	}
	r, err := m.draft(o, args)
	if err != nil {
		return nil, err
	}
	data, err := m.data(ctx, o, args)
	if err != nil {
		return nil, err
	}
	if err := checkContract(ctx, o.Ticket.Scope, data); err != nil {
		return nil, err
	}
	var text bytes.Buffer
	if err := json.Compact(&text, data); err != nil {
		return nil, err // checkContract has read it
	}
	r.Text = text.String()
	var unembedded string
	if r.Embedding, unembedded, err = embed.OneVector(ctx, m.Embedder, r.embeddable(), EmbedWait); err != nil {
		return nil, err
	}
	if r.Embedder = executors.Unembedded; len(r.Embedding) > 0 {
		r.Embedder = m.Embedder.Name()
	}
	waited, err := m.lock(ctx, r)
	if err != nil {
		return nil, executors.Store(err)
	}
	failpoint.Hit(failpoint.MemoryLocked)
	doc, err := r.document(o.Ticket.Position)
	if err != nil {
		return nil, err
	}
	if err := m.Documents.Put(ctx, r.Tenant, storage.IndexMemory, doc); err != nil {
		return nil, executors.Store(err)
	}
	failpoint.Hit(failpoint.MemoryWritten)
	return &executors.Result{
		Value:  catalog.WriteMemoryResult{Key: r.Key, SizeBytes: int64(len(r.Text)), Validated: true},
		Events: m.written(r, waited, unembedded),
	}, nil
}

// written makes the two events of a write: one for the audit, and the confirmation
// that readers of the store wait for.
func (m *memory) written(r record, waited time.Duration, unembedded string) []intents.ReportedEvent {
	payload := map[string]any{
		"key": r.Key, "size_bytes": len(r.Text), "validated": true, "lock_wait_ms": waited.Milliseconds(),
	}
	if len(r.Skills) > 0 {
		payload["skills"] = r.Skills
	}
	switch {
	case len(r.Embedding) > 0:
		payload["embedder"] = r.Embedder
	case m.Embedder != nil:
		payload["unembedded"] = unembedded
	}
	return []intents.ReportedEvent{
		executors.NewEvent("memory.written", payload),
		executors.NewEvent("memory.upsert", map[string]any{"key": r.Key}),
	}
}

// draft is the record to be stored, without the data.
func (m *memory) draft(o *executors.Intent, args catalog.WriteMemory) (record, error) {
	task, actor, session := o.Ticket.Scope, o.Ticket.Actor, o.Context.SessionID
	switch {
	case task == nil:
		return record{}, executors.Fail(intents.MalformedArgs, "only a task writes memories")
	case session == "":
		return record{}, executors.Fail(intents.MalformedArgs, "the intent has no session, which the key needs")
	case !labels.MatchString(args.Label):
		return record{}, executors.Fail(intents.MalformedArgs, "a label has 1 to 64 of a-z, 0-9 and _")
	}
	scope, ttl := args.Scope, UserTTL
	switch scope {
	case "", scopeSession:
		scope, ttl = scopeSession, SessionTTL
	case scopeUser, scopeTenant:
	default:
		return record{}, executors.Fail(intents.MalformedArgs, "scope is session, user or tenant")
	}
	now := timestamp(m.Now())
	ends := now.Add(ttl)
	full := key(actor.Tenant, session, task.Task, args.Label)
	return record{
		ID: full, Key: full, Tenant: actor.Tenant, Session: session, Task: task.Task, User: actor.UserID, Scope: scope, Notes: args.Notes,
		Source: o.ID, Sources: o.Ticket.Sources, Skills: task.Skills, Plan: task.Plan, StepIndex: task.Step, Ask: task.Ask, CreatedAt: now, TTLAt: &ends,
	}, nil
}

// data is the value to store; a file that is not JSON breaks every contract.
func (m *memory) data(ctx context.Context, o *executors.Intent, args catalog.WriteMemory) (json.RawMessage, error) {
	d, ok, err := o.Data(ctx, m.Blobs, "/data", args.Data)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, executors.Fail(intents.MalformedArgs, "there is nothing to store: data or from is needed")
	}
	defer d.Close()
	return d.ReadAll(MaxSize)
}
