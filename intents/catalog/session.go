package catalog

import (
	"encoding/json"
	"time"

	"aob.dev/writ/intents"
)

var (
	sessionReaders = []intents.Role{intents.RoleManager, intents.RoleGateway}
	sessionRows    = []Row{
		{Type: "session.get", Title: "Read a session", Capability: "sessions:read", Signers: sessionReaders, Executor: "sessions", Effect: Pure},
		{Type: "session.create", Title: "Begin a session", Capability: "sessions:write", Signers: sessionReaders, Executor: "sessions", Effect: Idempotent},
		{Type: "session.append", Title: "Append a turn to a session", Capability: "sessions:write", Signers: sessionReaders, Executor: "sessions", Effect: Idempotent},
		{Type: "session.update", Title: "Replace a session's workflow state", Capability: "sessions:write", Signers: sessionReaders, Executor: "sessions", Effect: Idempotent},
		{Type: "session.close", Title: "End a session", Capability: "sessions:write", Signers: sessionReaders, Executor: "sessions", Effect: Idempotent},
		{Type: "session.resume", Title: "Go on with an ended session", Capability: "sessions:write", Signers: sessionReaders, Executor: "sessions", Effect: Idempotent},
		{Type: "soul.get", Title: "Read the persona", Capability: "souls:read", Signers: sessionReaders, Executor: "sessions", Effect: Pure},
		{Type: "soul.put", Title: "Write the persona", Capability: "souls:write", Signers: []intents.Role{intents.RoleGateway, intents.RoleOperator}, Executor: "sessions", Effect: Idempotent},
	}
)

// SessionRef are the arguments of session.get: the newest turns, or those before
// a cursor, or what the prompt of the next turn takes.
type SessionRef struct {
	SessionID   string `json:"session_id"`
	Limit       int    `json:"limit,omitempty"` // turns, 1 to 100; absent: all
	Before      string `json:"before,omitempty"`
	TokenBudget int    `json:"token_budget,omitempty"` // of the prompt
	Moments     int    `json:"moments,omitempty"`      // summaries before the turns of a prompt, 1 to 20
}

// Statuses of a session: it accepts turns; its subject is done.
const (
	SessionActive    = "active"
	SessionCompleted = "COMPLETED"

	sessionAbandoned = "ABANDONED"
)

// StatusOfSession is the status of a session in a stored state. One past its time to live is
// abandoned, whether or not that was recorded.
func StatusOfSession(state string, ttl *time.Time, now time.Time) string {
	if state == SessionActive && ttl != nil && !ttl.After(now) {
		return sessionAbandoned
	}
	return state
}

// SessionList selects sessions of a user.
type SessionList struct {
	Limit int    `json:"limit,omitempty"`
	After string `json:"after,omitempty"`
}

// SessionCreate are the arguments of session.create.
type SessionCreate struct {
	SessionID  string `json:"session_id"`
	Agent      string `json:"agent,omitempty"`
	TTLMinutes int    `json:"ttl_minutes,omitempty"` // default 30
}

// Turn is one entry of a session's history.
type Turn struct {
	Role          string    `json:"role"` // user, agent, system, memory, observation, think
	Content       string    `json:"content"`
	Timestamp     time.Time `json:"timestamp"`
	IntentSummary string    `json:"intent_summary,omitempty"` // of a user's message: what the classifier made of it; of a memory: the key of its moment
}

// SessionAppend are the arguments of session.append: atomic, refreshes the ttl.
// The first turns of a Key are final, and answer all later ones; they begin the
// session if it does not exist.
type SessionAppend struct {
	SessionID string       `json:"session_id"`
	Key       string       `json:"key,omitempty"`
	Turns     []Turn       `json:"turns"` // 1..10
	Summary   *TurnSummary `json:"did,omitempty"`
	Used      *Usage       `json:"used,omitempty"` // by the whole turn
}

// TurnSummary is the work of the agents of the latest turn. Agents that are asked in the next turn,
// and were not in this one, get it.
type TurnSummary struct {
	Agents []string `json:"agents"`
	Text   string   `json:"text"` // at most 2 KiB
}

// SessionUpdate are the arguments of session.update.
type SessionUpdate struct {
	SessionID     string          `json:"session_id"`
	WorkflowState json.RawMessage `json:"workflow_state"`
}

// SessionClose are the arguments of session.close.
type SessionClose struct {
	SessionID string `json:"session_id"`
	Status    string `json:"status"` // COMPLETED, ABANDONED, ERROR
}

// SessionResume are the arguments of session.resume.
type SessionResume struct {
	SessionID string `json:"session_id"` // the new one
	From      string `json:"from_session_id"`
}

// Session is the result of every session intent.
type Session struct {
	SessionID     string          `json:"session_id"`
	UserID        string          `json:"user_id"`
	Status        string          `json:"status"` // active, COMPLETED, ABANDONED, ERROR
	TTL           *time.Time      `json:"ttl,omitempty"`
	StartedAt     time.Time       `json:"started_at"`
	LastActive    time.Time       `json:"last_active"`
	Agent         string          `json:"agent,omitempty"`
	TurnHistory   []Turn          `json:"turn_history"`
	WorkflowState json.RawMessage `json:"workflow_state,omitempty"`
	ResumedFrom   string          `json:"resumed_from,omitempty"` // the session that it continues, which may have older turns
	Cursor        string          `json:"cursor,omitempty"`       // of session.get: there are older turns before it
	Summary       *TurnSummary    `json:"did,omitempty"`          // in what the prompt of the next turn takes
}

// SessionListResult are sessions of a user, the last used first, without turns.
type SessionListResult struct {
	Sessions []Session `json:"sessions"`
	Cursor   string    `json:"cursor,omitempty"`
}

// Persona of a soul.
type Persona struct {
	Name         string `json:"name"`
	SystemPrompt string `json:"system_prompt"`
	Tone         string `json:"tone,omitempty"`
	Language     string `json:"language,omitempty"`
}

// SoulGet are the arguments of soul.get: the actor's soul, else the tenant's.
type SoulGet struct{}

// SoulPut are the arguments of soul.put; without UserID the tenant's soul.
type SoulPut struct {
	UserID   string          `json:"user_id,omitempty"`
	Persona  Persona         `json:"persona"`
	Policies json.RawMessage `json:"policies,omitempty"` // object
}

// Soul is the result of soul.get and soul.put; Persona nil: none is stored.
type Soul struct {
	UserID    string          `json:"user_id,omitempty"`
	Persona   *Persona        `json:"persona,omitempty"`
	Policies  json.RawMessage `json:"policies,omitempty"`
	UpdatedAt *time.Time      `json:"updated_at,omitempty"`
}
