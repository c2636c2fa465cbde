package bus

import "encoding/json"

// LogsRequest opens a stream of logs.stream, or requests the next lines of an open one.
type LogsRequest struct {
	ID    string `json:"id"`              // of the stream
	After string `json:"after,omitempty"` // cursor of the last line that the follower has
	Now   bool   `json:"now,omitempty"`   // return the existing lines without waiting

	// Tenant is the caller's when opening; empty: the stream is open.
	Tenant string `json:"tenant,omitempty"`
	UserID string `json:"user_id,omitempty"`
	Client string `json:"client,omitempty"` // act.client of a grant of the caller
}

// LogsReply has lines, oldest first. It is sent once there are lines, or after a moment without
// any.
type LogsReply struct {
	Lines  []LogLine `json:"lines,omitempty"`
	Since  int64     `json:"since,omitempty"` // of an opened stream: Unix time of its intent
	Ended  bool      `json:"over,omitempty"`  // the run has ended, and these are its last lines
	Code   string    `json:"code,omitempty"`  // of a failure
	Reason string    `json:"reason,omitempty"`
}

// LogLine is a line (catalog.LogLine) with the cursor that follows it.
type LogLine struct {
	Line   json.RawMessage `json:"line"`
	Cursor string          `json:"cursor"`
}
