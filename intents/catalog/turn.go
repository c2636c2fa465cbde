package catalog

import "aob.dev/writ/intents"

// Kinds of requests: how repeated requests are identified.
const (
	RequestKey   = "key"   // by a key of the client's: for a day
	RequestBody  = "body"  // by its content: while the turn is open
	RequestRetry = "retry" // by its content, if the client marks it as a retry: for ten minutes longer
)

// Request is which request of a user opens a plan. A second one is SESSION_BUSY, which
// names the plan.
type Request struct {
	Digest string `json:"digest"`
	Kind   string `json:"kind"`
}

// TurnContext is what the prompts of a turn take from its request. All is optional, and
// nothing of it is stored with the session.
type TurnContext struct {
	History         []ChatMessage `json:"history,omitempty"`  // in place of the session's
	LeftOut         int           `json:"left_out,omitempty"` // earlier messages that are not in History
	Images          []string      `json:"images,omitempty"`   // of the message: https: URLs, and digests of data: URLs, which travel with the dispatch
	Locale          string        `json:"locale,omitempty"`
	Location        string        `json:"location,omitempty"`
	TimeZone        string        `json:"time_zone,omitempty"` // of the IANA database
	SessionName     string        `json:"session_name,omitempty"`
	SessionMetadata string        `json:"session_metadata,omitempty"`
	ActionTypes     []string      `json:"action_types,omitempty"` // that the client can do or show
}

// Transient are the texts of a request for the prompts of its turn that no record keeps once the
// plan has ended: they travel beside plan.open. All is optional.
type Transient struct {
	AddedInstruction string `json:"added_instruction,omitempty"`
	UserEmail        string `json:"user_email,omitempty"`
	UserName         string `json:"user_name,omitempty"` // as shown to people
}

// Names of transient texts.
const (
	addedInstruction = "added_instruction"
	userEmail        = "user_email"
	userName         = "user_name"
)

// Salted are the texts as they travel beside an envelope; each call salts them anew.
func (t Transient) Salted() intents.Transient {
	out := intents.Transient{}
	for name, text := range map[string]string{addedInstruction: t.AddedInstruction, userEmail: t.UserEmail, userName: t.UserName} {
		if text != "" {
			out[name] = intents.NewTransientText(text)
		}
	}
	return out
}

// TransientOf reads texts that have travelled beside an envelope.
func TransientOf(t intents.Transient) Transient {
	return Transient{AddedInstruction: t[addedInstruction].Text, UserEmail: t[userEmail].Text, UserName: t[userName].Text}
}

// Speakers of a conversation. Memories, which models write, observations and thoughts are
// only in sessions: a prompt has the first two with their label, as neither the system's words nor the
// user's, and never the third.
const (
	SpeakerUser   = "user"
	SpeakerAgent  = "agent"
	SpeakerSystem = "system"
	Memory        = "memory"
	Observation   = "observation"
	Think         = "think"
)

// ChatMessage is one message of a conversation.
type ChatMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}
