package catalog

import (
	"aob.dev/writ/intents"
)

var logRows = []Row{
	{Type: "logs.stream", Title: "Get an address to follow the log of a run at", Capability: "logs:read", Signers: []intents.Role{intents.RoleManager, intents.RoleGateway, intents.RoleOperator}, Executor: "logs", Effect: Pure},
}

// LogsStream are the arguments of logs.stream.
type LogsStream struct {
	RunID  string `json:"run_id"`           // a plan's id
	Filter string `json:"filter,omitempty"` // LogsAll (default) or LogsErrors
	NodeID string `json:"node_id,omitempty"`
}

// The filters.
const (
	LogsAll    = "all"
	LogsErrors = "errors"
)

// LogsStreamResult is the result of logs.stream. The address can be opened once, with
// the bearer of the intent.
type LogsStreamResult struct {
	StreamURL  string `json:"stream_url"` // ws:// or wss://
	ExpiresSec int    `json:"expires_in_sec"`
}

// EventLine is the type of the events that are lines of a log.
const EventLine = "log.line"

// LogLine is a line in the log of a run. Attempt and N number the lines of an intent, whose
// position is Target, from attempt 1 and line 0. Lines of intents that run at once are
// interleaved.
type LogLine struct {
	intents.Line
	PlanID  string `json:"plan_id"`
	NodeID  string `json:"node_id,omitempty"`
	Step    int    `json:"step,omitempty"`
	Target  int64  `json:"of"`
	Attempt int    `json:"attempt"`
	N       int    `json:"n"`
}

// LastLine is the number of the line that reports how an intent failed; no other has it.
const LastLine = 999

// Matches reports whether a line passes a filter and, where node is not empty, is of that node.
func (l LogLine) Matches(filter, node string) bool {
	return (filter != LogsErrors || l.Level == intents.LevelError) && (node == "" || l.NodeID == node)
}
