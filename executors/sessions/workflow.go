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
	"aob.dev/writ/storage"
)

// maxHistory bounds the turns sent to a remote agent, in bytes.
const maxHistory = 64 << 10

// Workflows is the session data of remote agents: the history, and a state of each agent of its
// own.
type Workflows struct {
	Documents storage.Documents
	Now       func() time.Time
}

// workflow is a document of agent_workflows.
type workflow struct {
	Tenant   string          `json:"tenant_id"`
	User     string          `json:"user_id"`
	Session  string          `json:"session_id"`
	Agent    string          `json:"agent"`
	Complete bool            `json:"workflow_complete"`
	State    json.RawMessage `json:"workflow_state,omitempty"`
	Updated  time.Time       `json:"updated_at"`
}

// workflowID: ids of users and sessions have no slash.
func workflowID(o *executors.Intent, agent string) string {
	return documentOf(o.Ticket.Actor.UserID, o.Context.SessionID) + "/" + agent
}

// State is the state that the agent returned for the next message of the intent's session; nil:
// none, or the workflow was complete.
func (w Workflows) State(ctx context.Context, o *executors.Intent, agent string) (json.RawMessage, error) {
	doc, err := w.Documents.Get(ctx, o.Ticket.Actor.Tenant, storage.IndexWorkflows, workflowID(o, agent))
	if errors.Is(err, storage.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, executors.Store(err)
	}
	var kept workflow
	if err := json.Unmarshal(doc.Body, &kept); err != nil {
		return nil, executors.Fail(intents.ExecutorFailed, "a stored workflow cannot be read")
	}
	return kept.State, nil
}

// History has the messages of user and agents in the intent's session, oldest first.
func (w Workflows) History(ctx context.Context, o *executors.Intent) ([]catalog.Turn, error) {
	found, _, err := (&sessions{docs: w.Documents}).load(ctx, o, o.Context.SessionID)
	if isUnavailable(err) {
		return nil, err
	}
	said := slices.DeleteFunc(found.Messages, func(m message) bool { return m.Role != catalog.SpeakerUser && m.Role != catalog.SpeakerAgent })
	said = newest(said, maxHistory)
	out := []catalog.Turn{}
	for _, m := range said[max(0, len(said)-MaxTurns):] {
		out = append(out, catalog.Turn{Role: m.Role, Content: m.Content, Timestamp: m.TS, IntentSummary: m.Summary})
	}
	return out, nil
}

// Keep writes state and end of the agent's workflow, fenced by the intent's position: of two turns
// the later one wins, and a repeated intent writes nothing.
//
// Crash: before it the intent's outcome is not known, since the agent has the message; after it the
// state belongs to an answer that nobody may have seen, as with any call that acts once.
func (w Workflows) Keep(ctx context.Context, o *executors.Intent, agent string, state json.RawMessage, complete bool) error {
	if complete {
		state = nil
	}
	actor := o.Ticket.Actor
	doc, err := executors.Document(workflowID(o, agent), o.Ticket.Position, workflow{
		actor.Tenant, actor.UserID, o.Context.SessionID, agent, complete, state, w.Now().UTC().Truncate(time.Millisecond),
	})
	if err != nil {
		return err
	}
	return executors.Store(w.Documents.Put(ctx, actor.Tenant, storage.IndexWorkflows, doc))
}
