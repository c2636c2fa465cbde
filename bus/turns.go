package bus

import (
	"encoding/json"
	"strings"
)

// TurnRef names the user, the turn and the plan that a message is about, with the grant under which
// its receiver works.
type TurnRef struct {
	Tenant    string `json:"tenant"`
	UserID    string `json:"user_id"`
	SessionID string `json:"session_id,omitempty"`
	TurnID    string `json:"turn_id"`
	PlanID    string `json:"plan_id,omitempty"`
	TraceID   string `json:"trace_id,omitempty"`
	Grant     string `json:"grant,omitempty"` // compact JWS; fresh ones come as FreshGrant
}

// PlanDispatch gives a turn to a manager, or a run to a workflow engine: a request on
// Agent("manager") or Agent("workflow"). The receiver answers with a PlanDispatchReply at once
// and shows the progress of the turn as frames on Turn(Tenant, TurnID). A plan may be dispatched
// again, with a fresh driver and a standing grant, after a crash or when an intent that waited
// for approval has its outcome: then the manager's plan.claim returns the state of the plan.
type PlanDispatch struct {
	TurnRef
	Driver string `json:"driver"` // random; for plan.claim
	Epoch  int    `json:"epoch"`  // of the plan, as last known: 0 for one just opened

	// Images of the request are data: URLs, whose digests the plan has. A later dispatch has none.
	Images []string `json:"images,omitempty"`
}

// PlanDispatchReply says whether the turn was accepted, and which process of the role runs it.
type PlanDispatchReply struct {
	Accepted bool   `json:"accepted"`
	Instance string `json:"instance,omitempty"` // for Grant(manager, instance)
	Code     string `json:"code,omitempty"`     // of a refusal, such as OVERLOADED
	Reason   string `json:"reason,omitempty"`
}

// FreshGrant goes to the process that runs an open plan, and from there to the processes that
// work for it: from then on their intents carry this grant. Without a grant it asks whether the
// process runs the plan.
type FreshGrant struct {
	PlanID  string `json:"plan_id"`
	Driver  string `json:"driver"` // of the dispatch
	Grant   string `json:"grant"`
	Patched bool   `json:"patched,omitempty"` // instead of a grant: the graph of the run has changed
	// StoppedBy, instead of a grant, names who has cancelled the plan: the work ends at once.
	StoppedBy string `json:"stopped_by,omitempty"`
	// Why, instead of a grant, says why the work ends at once and the plan is closed.
	Why string `json:"why,omitempty"`
}

// FreshGrantReply says whether the process works for that driver.
type FreshGrantReply struct {
	Accepted bool `json:"taken"`
}

// FindRunRequest asks all processes of a role at once which of them runs a plan.
type FindRunRequest struct {
	PlanID string `json:"plan_id"`
	// StoppedBy names who has cancelled the plan: the process ends its work at once.
	StoppedBy string `json:"stopped_by,omitempty"`
	// Plans, instead of a plan, are those of which each process ends its own at once and closes them,
	// because of Why. Nobody replies.
	Plans []string `json:"plans,omitempty"`
	Why   string   `json:"why,omitempty"`
}

// FindRunReply is the answer of the process that does. The others send no reply.
type FindRunReply struct {
	Driver   string `json:"driver"`   // of the dispatch
	Instance string `json:"instance"` // for Grant(role, instance)
}

// FrameKind is the kind of a display frame.
type FrameKind string

// The kinds of frames with the type of their data. FrameDone is the last one of a turn.
// FramePendingApproval ends a stream too, but not the turn: frames continue when the plan is
// dispatched again. Content and tokens are for display; FrameAnswer has the whole answer, once.
const (
	FrameStatus          FrameKind = "status"        // StatusData
	FrameChildContent    FrameKind = "child_content" // ContentData: of an agent asked by another
	FrameToken           FrameKind = "token"         // ContentData: a piece of the answer as the model writes it
	FramePendingApproval FrameKind = "held"          // PendingApprovalData
	FrameAnswer          FrameKind = "answer"        // AnswerData
	FrameError           FrameKind = "error"         // ErrorData
	FrameDone            FrameKind = "done"          // DoneData
	FrameAction          FrameKind = "action"        // ActionData: of an agent
	FrameRequest         FrameKind = "request"       // a request to a model, where the operator has requests shown (writ up --debug)
)

// TurnFrame is the message on a turn's subject. The stream assigns its sequence number
// (Frame.Seq).
type TurnFrame struct {
	Kind FrameKind       `json:"kind"`
	Data json.RawMessage `json:"data,omitempty"`
}

// NewFrame marshals a frame; data is the type that belongs to kind.
func NewFrame(kind FrameKind, data any) ([]byte, error) {
	raw, err := json.Marshal(data)
	if err != nil {
		return nil, err
	}
	return json.Marshal(TurnFrame{kind, raw})
}

// StatusData is the progress of a turn.
type StatusData struct {
	State   string `json:"state"`             // accepted, planning, executing, replanning, step_started, calling (Message is the skill), working, step_done, …
	Event   string `json:"event,omitempty"`   // of working: the status of the agent; Message has it in the user's words
	Message string `json:"message,omitempty"` // one line for people
	Step    int    `json:"step,omitempty"`
	TaskID  string `json:"task_id,omitempty"`

	// Of running: the call, and how far its server says that it is.
	IntentID string  `json:"intent_id,omitempty"`
	Progress float64 `json:"progress,omitempty"`
	Total    float64 `json:"total,omitempty"`

	// PlanID is set in the first frame of a stream, by the gateway.
	PlanID    string `json:"plan_id,omitempty"`
	SessionID string `json:"session_id,omitempty"`
	TurnID    string `json:"turn_id,omitempty"`
}

// ContentData is a piece of text, or withdraws the text so far: the model broke off and begins
// anew.
type ContentData struct {
	Text  string `json:"text"`
	Reset bool   `json:"reset,omitempty"`
	Agent string `json:"agent,omitempty"` // that was asked for the text; empty: the turn's agent
}

// ActionData is an action for the user's application to do or show. It is recorded in the intent
// with this id.
type ActionData struct {
	Type     string          `json:"type"`
	Payload  json.RawMessage `json:"payload,omitempty"` // an object
	IntentID string          `json:"intent_id"`
}

// PendingApprovalData reports that the plan waits for approval, with a text that says what is
// done and what waits.
type PendingApprovalData struct {
	PlanID   string   `json:"plan_id"`
	Text     string   `json:"text,omitempty"`
	Approval Approval `json:"approval"`
}

// Approval names an intent with a pending approval.
type Approval struct {
	IntentID  string   `json:"intent_id"`
	Type      string   `json:"type,omitempty"` // intent type of the pending intent
	Step      int      `json:"step,omitempty"`
	Approvers []string `json:"approvers,omitempty"`
	PolicyIDs []string `json:"policy_ids,omitempty"`
	Reason    string   `json:"reason,omitempty"`
	Hint      string   `json:"hint,omitempty"`     // of one that asks nobody: what ends the wait
	Deadline  string   `json:"deadline,omitempty"` // RFC 3339
	URL       string   `json:"url,omitempty"`      // path at which the approval is followed
}

// AnswerData is the answer to the turn.
type AnswerData struct {
	Response string          `json:"response"`
	Data     json.RawMessage `json:"data,omitempty"` // the rows behind it, where there are any
	// Components are rendered by agents beside the answer: [{name, props}].
	Components json.RawMessage `json:"components,omitempty"`
}

// ArtifactData stands for data of an answer of 50,000 bytes or more: it is retained for good and
// can be read at URL with a key of the user's tenant.
type ArtifactData struct {
	Artifact  string   `json:"artifact"` // cas://sha256:<hex>
	SizeBytes int64    `json:"size_bytes"`
	MediaType string   `json:"media_type"`
	URL       string   `json:"url"`    // path of the gateway
	Sample    []string `json:"sample"` // first lines
}

// ArtifactURL returns the gateway's path of an artifact.
func ArtifactURL(artifact string) string {
	return "/agent/artifacts/" + strings.TrimPrefix(artifact, "cas://")
}

// ErrorData explains why there is no answer.
type ErrorData struct {
	Code    string          `json:"code,omitempty"`
	Reason  string          `json:"reason"`
	Failure json.RawMessage `json:"failure,omitempty"` // catalog.Failure
}

// DoneData ends a turn.
type DoneData struct {
	PlanID string `json:"plan_id"`
	Status string `json:"status"` // complete, failed
	// WorkflowComplete: a remote agent has completed the purpose of the session, and the session
	// is closed.
	WorkflowComplete bool `json:"workflow_complete,omitempty"`
}
