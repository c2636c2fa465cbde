package bus

import "encoding/json"

// Attempt is one attempt at an intent.
type Attempt struct {
	IntentID string `json:"intent_id"`
	Number   int    `json:"attempt"`
}

// ReportRequest asks on Reports(executor) what became of an attempt that was dispatched. The process
// that has begun it answers at once; the others answer later, so that the first reply is the one that
// knows most. Recorded are attempts whose outcome is durable: their reports may be dropped.
type ReportRequest struct {
	Attempt
	Recorded []Attempt `json:"recorded,omitempty"`
}

// ReportReply answers a ReportRequest.
type ReportReply struct {
	State  string          `json:"state"`            // ReportRunning, ReportDone or ReportUnknown
	Report json.RawMessage `json:"report,omitempty"` // of ReportDone: an intents.Report
}

// States of an attempt at its executor. Unknown: it was not begun, or the process that began it has
// ended since.
const (
	ReportRunning = "running"
	ReportDone    = "done"
	ReportUnknown = "unknown"
)
