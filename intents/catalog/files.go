package catalog

import (
	"encoding/json"

	"aob.dev/writ/intents"
)

// SampleLines is how many lines a sample has, MaxLine where each is cut, and so is the text of a hit
// of memory.query.
const (
	SampleLines = 20
	MaxLine     = 2 << 10
)

var fileRows = []Row{
	{Type: "write_temp", Title: "Keep data for the rest of the step", Capability: "files:write", Signers: []intents.Role{intents.RoleTask}, Executor: "files", Effect: Idempotent, DataAt: "/data"},
	{Type: "read_lines", Title: "Read lines of a file of the step", Capability: "files:read", Signers: []intents.Role{intents.RoleTask}, Executor: "files", Effect: Pure},
}

// WriteTemp are the arguments of write_temp: exactly one of Data and From. A
// string is stored as text, anything else as JSON.
type WriteTemp struct {
	Data json.RawMessage `json:"data,omitempty"`
	From string          `json:"from,omitempty"`
}

// WriteTempResult is the result of write_temp.
type WriteTempResult struct {
	FileID    string `json:"file_id"`
	SizeBytes int64  `json:"size_bytes"`
	SHA256    string `json:"sha256"`
}

// ReadLines are the arguments of read_lines; Start counts from 0.
type ReadLines struct {
	FileID string `json:"file_id"`
	Start  int    `json:"start"`
	N      int    `json:"n"` // 1..1000
}

// ReadLinesResult is the result of read_lines; More says that lines follow.
type ReadLinesResult struct {
	Lines []string `json:"lines"`
	More  bool     `json:"more"`
}
