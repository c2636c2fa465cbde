// Package sessions stores conversations and personas: documents of agent_sessions and agent_souls,
// and a row of agent_messages for each turn. A change reads a document and replaces exactly the
// version that it read, fenced by the ticket's position: a repeated intent is applied once, and one
// that arrives after a later one is STALE. An intent that had its effect although it failed for its
// sender is recognised by its idempotency key when it is repeated, under any position and
// intent_id.
package sessions

import (
	"cmp"
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
	mostTurns  = 1000    // that can be configured
	MaxHistory = 1 << 20 // bytes of turns; session.get can return all of them
)

// Config of the executor.
type Config struct {
	Documents storage.Documents
	Now       func() time.Time
	TTL       time.Duration // of a session that does not say; 0: DefaultTTL
	MaxTurns  int           // 0: MaxTurns
}

// active is the state of a session that accepts turns, as written.
const active = catalog.SessionActive

// Handlers of the executor. They have no state.
func Handlers(cfg Config) map[string]executors.Handler {
	s := &sessions{cfg.Documents, cfg.Now, cmp.Or(cfg.TTL, DefaultTTL), min(cmp.Or(cfg.MaxTurns, MaxTurns), mostTurns)}
	return map[string]executors.Handler{
		"session.get": executors.WithArgs(s.get), "session.create": executors.WithArgs(s.create),
		"session.append": executors.WithArgs(s.append), "session.update": executors.WithArgs(s.update), "session.close": executors.WithArgs(s.close),
		"session.resume": executors.WithArgs(s.resume), "soul.get": executors.WithArgs(s.soul), "soul.put": executors.WithArgs(s.putSoul),
	}
}

type sessions struct {
	docs  storage.Documents
	now   func() time.Time
	ttl   time.Duration
	turns int // that a session has at most
}

// session is a document of agent_sessions.
type session struct {
	ID         string               `json:"session_id"`
	Tenant     string               `json:"tenant_id"`
	User       string               `json:"user_id"`
	State      string               `json:"state"`
	StartedAt  time.Time            `json:"started_at"`
	LastActive time.Time            `json:"last_active"`
	Messages   []message            `json:"messages"`
	TTLAt      *time.Time           `json:"ttl_at,omitempty"`
	TTLMinutes int                  `json:"ttl_minutes,omitempty"`
	Agent      string               `json:"agent,omitempty"`
	Workflow   json.RawMessage      `json:"workflow_state,omitempty"`
	From       string               `json:"resumed_from,omitempty"`
	Summary    *catalog.TurnSummary `json:"did,omitempty"`
	Sources    []intents.Source     `json:"sources,omitempty"` // of all that was ever said in it
}

// message is one turn; its id derives from the intent that wrote it, however often the intent was
// sent.
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
	return catalog.StatusOfSession(s.State, s.TTLAt, now) == active
}

// untouched reports whether s is still as its intent created it; fresh is what the same
// intent would create now.
func (s *session) untouched(fresh session) bool {
	return s.StartedAt.Equal(s.LastActive) && s.Agent == fresh.Agent && s.TTLMinutes == fresh.TTLMinutes && s.From == fresh.From &&
		slices.EqualFunc(s.Messages, fresh.Messages, func(a, b message) bool { return a.ID == b.ID })
}

// touch restarts the time to live of a session.
func (s *sessions) touch(found *session, now time.Time) {
	ends := now.Add(cmp.Or(time.Duration(found.TTLMinutes)*time.Minute, s.ttl))
	found.LastActive, found.TTLAt = now, &ends
}

// view is the session as its owner sees it.
func (s *session) view(now time.Time) catalog.Session {
	v := catalog.Session{
		SessionID: s.ID, UserID: s.User, Status: catalog.StatusOfSession(s.State, s.TTLAt, now), TTL: s.TTLAt, StartedAt: s.StartedAt, LastActive: s.LastActive,
		Agent: s.Agent, TurnHistory: make([]catalog.Turn, len(s.Messages)), WorkflowState: s.Workflow, ResumedFrom: s.From, Summary: s.Summary,
	}
	for i, m := range s.Messages {
		v.TurnHistory[i] = catalog.Turn{Role: m.Role, Content: m.Content, Timestamp: m.TS, IntentSummary: m.Summary}
	}
	return v
}

// result is the view as the result of an intent.
func (s *session) result(now time.Time) *executors.Result {
	return &executors.Result{Value: s.view(now), Sources: s.Sources}
}

func (s *sessions) time() time.Time { return s.now().UTC().Truncate(time.Millisecond) }

// documentOf is where the session of a user is.
func documentOf(user, id string) string { return user + "/" + id }

// load reads a session of the intent's user and its version, if it exists.
func (s *sessions) load(ctx context.Context, o *executors.Intent, id string) (found session, at storage.Document, err error) {
	actor := o.Ticket.Actor
	if at, err = s.docs.Get(ctx, actor.Tenant, storage.IndexSessions, documentOf(actor.UserID, id)); err != nil {
		return session{}, at, executors.Store(err)
	}
	if err := json.Unmarshal(at.Body, &found); err != nil {
		return session{}, at, executors.Fail(intents.ExecutorFailed, "a stored session cannot be read")
	}
	if found.User != actor.UserID {
		return session{}, at, executors.Store(storage.ErrNotFound)
	}
	return found, at, nil
}

// errApplied is the error of a change that was applied before.
var errApplied = errors.New("applied before")

// change applies a change to a session once. If another intent was faster, apply is called again
// with the newer session; a change that apply refuses is not written.
func (s *sessions) change(ctx context.Context, o *executors.Intent, id string, apply func(*session) error) (*executors.Result, error) {
	for {
		found, at, err := s.load(ctx, o, id)
		if err != nil {
			return nil, err
		}
		version := at.Position
		if version == o.Ticket.Position { // this intent has been applied
			return found.result(s.time()), nil
		}
		refused := apply(&found)
		switch {
		case errors.Is(refused, errApplied):
			return found.result(s.time()), nil
		case version > o.Ticket.Position:
			return nil, executors.Store(storage.ErrStale)
		case refused != nil:
			return nil, refused
		}
		found.Sources = intents.JoinSources(found.Sources, o.Ticket.Sources)
		doc, err := executors.Document(at.ID, o.Ticket.Position, found)
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
		return found.result(s.time()), nil
	}
}

// begin writes a new session. An id that exists is refused, unless this intent created
// it: at this position, or at an earlier one and nothing has changed since.
func (s *sessions) begin(ctx context.Context, o *executors.Intent, fresh session) (*executors.Result, error) {
	fresh.Sources = intents.JoinSources(fresh.Sources, o.Ticket.Sources)
	doc, err := executors.Document(documentOf(fresh.User, fresh.ID), o.Ticket.Position, fresh)
	if err != nil {
		return nil, err
	}
	found, at, err := s.load(ctx, o, fresh.ID)
	if err != nil && !isUnavailable(err) {
		err = s.docs.Swap(ctx, fresh.Tenant, storage.IndexSessions, storage.NoPosition, doc)
		if err == nil {
			failpoint.Hit(failpoint.SessionWritten)
			return fresh.result(s.time()), nil
		}
		if errors.Is(err, storage.ErrStale) { // another intent was faster
			found, at, err = s.load(ctx, o, fresh.ID)
		}
	}
	switch {
	case err != nil:
		return nil, executors.Store(err)
	case at.Position == o.Ticket.Position || found.live(s.time()) && found.untouched(fresh):
		return found.result(s.time()), nil
	}
	return nil, executors.Fail(intents.MalformedArgs, "a session of this id exists")
}
