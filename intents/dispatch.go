package intents

import "encoding/json"

// Dispatch is the message to an executor: the signed intent and the ticket.
type Dispatch struct {
	Header  string          `json:"header"`  // encoded protected header
	Payload json.RawMessage `json:"payload"` // canonical bytes of the envelope without sig
	Ticket  string          `json:"ticket"`  // compact JWS
}

// Report is an executor's answer to a dispatch.
type Report struct {
	Status    Status          `json:"status"` // done, failed, indeterminate, unstarted
	Code      Code            `json:"code"`
	Reason    string          `json:"reason,omitempty"`
	Retryable bool            `json:"retryable,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"` // of a failure: its details
	Events    []ReportedEvent `json:"facts,omitempty"`
	Lines     []Line          `json:"lines,omitempty"` // what was written meanwhile
	Transport *Transport      `json:"transport,omitempty"`
}
