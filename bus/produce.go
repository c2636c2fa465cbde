package bus

import "encoding/json"

// ProduceRequest asks for one intent that does what a sentence says, signed under the grant. It
// is not submitted.
type ProduceRequest struct {
	Tenant    string `json:"tenant"`
	UserID    string `json:"user_id"`
	SessionID string `json:"session_id,omitempty"`
	TurnID    string `json:"turn_id"`
	Grant     string `json:"grant"`
	TraceID   string `json:"trace_id,omitempty"`
	Request   string `json:"request"`
}

// ProduceReply has the signed intent, or explains in plain words why there is none.
type ProduceReply struct {
	Envelope json.RawMessage `json:"envelope,omitempty"` // signed
	IntentID string          `json:"intent_id,omitempty"`
	Type     string          `json:"type,omitempty"`
	Reason   string          `json:"reason,omitempty"`
	Code     string          `json:"code,omitempty"` // of a failure: no intent was produced
}
