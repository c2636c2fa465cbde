package agentic

import (
	"encoding/json"
	"strings"

	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/visible"
)

// How much of a result a model sees, in bytes.
const (
	planShow    = 4 << 10  // for a replan, where results are background
	composeShow = 16 << 10 // for the answer
)

// result is a step's result as the manager read it: data, or the reference to data that is too
// large to be inline.
type result struct {
	data  json.RawMessage
	ref   *catalog.Reference
	notes string // of the step's model
}

// answer returns the data for the user: the data itself, or, if it is large, the reference with
// the first lines.
func (r result) answer() json.RawMessage {
	if r.ref == nil {
		return r.data
	}
	out, _ := json.Marshal(r.ref) // strings and a number
	return out
}

// show returns as much of a result as fits into limit bytes: all of it, its first rows, or the
// beginning of its text.
func (r result) show(limit int) stepResult {
	if r.ref == nil && len(r.data) <= limit {
		return stepResult{Result: r.data, Notes: r.notes}
	}
	var rows []json.RawMessage
	out := stepResult{Notes: r.notes, Cut: Cut{More: true}}
	text := string(r.data)
	if r.ref != nil {
		rows, text = sampled(r.ref.Sample), strings.Join(r.ref.Sample, "\n")
		out.Cut = cutOf(true, r.ref.Sample...)
	} else if json.Unmarshal(r.data, &rows) == nil {
		out.Rows = len(rows)
	}
	size, n := len("["), 0
	for ; n < len(rows) && size+len(rows[n])+len(",") <= limit; n++ {
		size += len(rows[n]) + len(",")
	}
	if n == 0 {
		out.Rows = 0
		out.Result, _ = json.Marshal(visible.Cut(text, limit)) // a string
		return out
	}
	out.Result, _ = json.Marshal(rows[:n]) // they were JSON
	return out
}

// sampled returns the rows in the first lines of a file with one array element a line. The last
// line may be incomplete.
func sampled(lines []string) []json.RawMessage {
	var rows []json.RawMessage
	for i, line := range lines {
		line = strings.TrimSuffix(strings.TrimSpace(line), ",")
		switch {
		case i == 0 && line == "[":
		case json.Valid([]byte(line)):
			rows = append(rows, json.RawMessage(line))
		default:
			return rows
		}
	}
	return rows
}
