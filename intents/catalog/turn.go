package catalog

// Kinds of requests: how a second one is told from the first.
const (
	RequestKey   = "key"   // by a key of the client's: for a day
	RequestBody  = "body"  // by what it says: while the turn is open
	RequestRetry = "retry" // by what it says, and the client says that it sends it again: for ten minutes longer
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
	History          []Said `json:"history,omitempty"` // in place of the session's
	AddedInstruction string `json:"added_instruction,omitempty"`
	Locale           string `json:"locale,omitempty"`
	Location         string `json:"location,omitempty"`
	TimeZone         string `json:"time_zone,omitempty"` // of the IANA database
	UserName         string `json:"user_name,omitempty"` // as shown to people
	UserEmail        string `json:"user_email,omitempty"`
	SessionName      string `json:"session_name,omitempty"`
	SessionMetadata  string `json:"session_metadata,omitempty"`
}

// Who says something in a conversation. Memories, which models write, observations and thoughts stand
// only in sessions: a prompt has the first two with their label, as neither the system's words nor the
// user's, and never the third.
const (
	SaidByUser   = "user"
	SaidByAgent  = "agent"
	SaidBySystem = "system"
	Memory       = "memory"
	Observation  = "observation"
	Think        = "think"
)

// Said is one message of a conversation.
type Said struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}
