// Package sessions stores conversations and personas: documents of agent_sessions and
// agent_souls, and a row of agent_messages for each turn. A change reads a document and
// replaces exactly the version that it read, fenced by the ticket's position: an order
// that comes twice is applied once, and one that comes after a later one is STALE. An
// order that had its effect although it failed for its sender is recognised by its
// idempotency key when it comes again, under any position and intent_id.
package sessions

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"aob.dev/writ/executors"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/failpoint"
	"aob.dev/writ/storage"
)

// Name of the executor.
const Name = "sessions"

// Bounds of a session.
const (
	DefaultTTL = 30 * time.Minute
	MaxTurns   = 100
	MaxHistory = 1 << 20 // bytes of turns; session.get can return all of them
	carried    = 50      // newest turns that resuming a full session keeps
)

// The states of sessions, as written.
const (
	active    = catalog.SessionActive
	abandoned = "ABANDONED"
)

// Handlers of the executor. They keep no state.
func Handlers(docs storage.Documents, now func() time.Time) map[string]executors.Handler {
	s := &sessions{docs, now}
	return map[string]executors.Handler{
		"session.get": executors.WithArgs(s.get), "session.list": executors.WithArgs(s.list), "session.create": executors.WithArgs(s.create),
		"session.append": executors.WithArgs(s.append), "session.update": executors.WithArgs(s.update), "session.close": executors.WithArgs(s.close),
		"session.resume": executors.WithArgs(s.resume), "soul.get": executors.WithArgs(s.soul), "soul.put": executors.WithArgs(s.putSoul),
	}
}

type sessions struct {
	docs storage.Documents
	now  func() time.Time
}

// session is a document of agent_sessions.
type session struct {
	ID         string          `json:"session_id"`
	Tenant     string          `json:"tenant_id"`
	User       string          `json:"user_id"`
	State      string          `json:"state"`
	StartedAt  time.Time       `json:"started_at"`
	LastActive time.Time       `json:"last_active"`
	Messages   []message       `json:"messages"`
	TTLAt      *time.Time      `json:"ttl_at,omitempty"`
	TTLMinutes int             `json:"ttl_minutes,omitempty"`
	Agent      string          `json:"agent,omitempty"`
	Workflow   json.RawMessage `json:"workflow_state,omitempty"`
	From       string          `json:"resumed_from,omitempty"`
	Did        *catalog.Did    `json:"did,omitempty"`
}

// message is one turn; its id derives from the order that wrote it, however
// often that was sent.
type message struct {
	ID      string    `json:"msg_id"`
	Role    string    `json:"role"`
	Content string    `json:"content"`
	TS      time.Time `json:"ts"`
	Summary string    `json:"intent_summary,omitempty"`
}

// live reports whether turns may still be appended. A session past its time to live is
// abandoned, whether or not that was recorded.
func (s *session) live(now time.Time) bool {
	return s.State == active && (s.TTLAt == nil || s.TTLAt.After(now))
}

// untouched reports whether s is still as its order created it; fresh is what the same
// order would create now.
func (s *session) untouched(fresh session) bool {
	return s.StartedAt.Equal(s.LastActive) && s.Agent == fresh.Agent && s.TTLMinutes == fresh.TTLMinutes && s.From == fresh.From &&
		slices.EqualFunc(s.Messages, fresh.Messages, func(a, b message) bool { return a.ID == b.ID })
}

// touch restarts the time to live.
func (s *session) touch(now time.Time) {
	ttl := DefaultTTL
	if s.TTLMinutes > 0 {
		ttl = time.Duration(s.TTLMinutes) * time.Minute
	}
	ends := now.Add(ttl)
	s.LastActive, s.TTLAt = now, &ends
}

// view is the session as its owner sees it.
func (s *session) view(now time.Time) catalog.Session {
	v := catalog.Session{
		SessionID: s.ID, UserID: s.User, Status: s.State, TTL: s.TTLAt, StartedAt: s.StartedAt, LastActive: s.LastActive,
		Agent: s.Agent, TurnHistory: make([]catalog.Turn, len(s.Messages)), WorkflowState: s.Workflow, ResumedFrom: s.From, Did: s.Did,
	}
	if s.State == active && !s.live(now) {
		v.Status = abandoned
	}
	for i, m := range s.Messages {
		v.TurnHistory[i] = catalog.Turn{Role: m.Role, Content: m.Content, Timestamp: m.TS, IntentSummary: m.Summary}
	}
	return v
}

func (s *sessions) time() time.Time { return s.now().UTC().Truncate(time.Millisecond) }

// load reads a session and its version; one of another user is reported as missing.
func (s *sessions) load(ctx context.Context, o *executors.Order, id string) (session, int64, error) {
	doc, err := s.docs.Get(ctx, o.Ticket.Actor.Tenant, storage.IndexSessions, id)
	if err != nil {
		return session{}, 0, executors.Store(err)
	}
	var found session
	if err := json.Unmarshal(doc.Body, &found); err != nil {
		return session{}, 0, executors.Fail(intents.ExecutorFailed, "a stored session cannot be read")
	}
	if found.User != o.Ticket.Actor.UserID {
		return session{}, 0, executors.Store(storage.ErrNotFound)
	}
	return found, doc.Position, nil
}

// errApplied is the error of a change that was applied before.
var errApplied = errors.New("applied before")

// change applies a change to a session once. Where another order was faster, apply is
// called again with the newer session; what apply refuses is not written.
func (s *sessions) change(ctx context.Context, o *executors.Order, id string, apply func(*session) error) (*executors.Result, error) {
	for {
		found, version, err := s.load(ctx, o, id)
		if err != nil {
			return nil, err
		}
		if version == o.Ticket.Position { // this order has been applied
			return &executors.Result{Value: found.view(s.time())}, nil
		}
		refused := apply(&found)
		switch {
		case errors.Is(refused, errApplied):
			return &executors.Result{Value: found.view(s.time())}, nil
		case version > o.Ticket.Position:
			return nil, executors.Store(storage.ErrStale)
		case refused != nil:
			return nil, refused
		}
		doc, err := document(o, found)
		if err != nil {
			return nil, err
		}
		err = s.docs.Swap(ctx, o.Ticket.Actor.Tenant, storage.IndexSessions, version, doc)
		if errors.Is(err, storage.ErrStale) && ctx.Err() == nil {
			continue
		}
		if err != nil {
			return nil, executors.Store(err)
		}
		failpoint.Hit(failpoint.SessionWritten)
		return &executors.Result{Value: found.view(s.time())}, nil
	}
}

// begin writes a new session. An id that exists is refused, unless this order created
// it: at this position, or at an earlier one and nothing has changed since.
func (s *sessions) begin(ctx context.Context, o *executors.Order, fresh session) (*executors.Result, error) {
	doc, err := document(o, fresh)
	if err != nil {
		return nil, err
	}
	err = s.docs.Swap(ctx, fresh.Tenant, storage.IndexSessions, storage.Nobody, doc)
	if errors.Is(err, storage.ErrStale) {
		found, version, err := s.load(ctx, o, fresh.ID)
		switch {
		case err == nil && (version == o.Ticket.Position || found.live(s.time()) && found.untouched(fresh)):
			return &executors.Result{Value: found.view(s.time())}, nil
		case isUnavailable(err):
			return nil, err
		}
		return nil, executors.Fail(intents.MalformedArgs, "a session of this id exists")
	}
	if err != nil {
		return nil, executors.Store(err)
	}
	failpoint.Hit(failpoint.SessionWritten)
	return &executors.Result{Value: fresh.view(s.time())}, nil
}

func document(o *executors.Order, s session) (storage.Document, error) {
	return executors.Document(s.ID, o.Ticket.Position, s)
}
