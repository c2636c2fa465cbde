package agentic

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"aob.dev/writ/intents/catalog"
)

// inputLabel is the label of the input of a step. If there are several, s1 is that of step 1.
const inputLabel = "r0"

// material is data that the step may work on: inline, or a file of the step.
type material struct {
	intentID string // the intent that returned it; "from" of later ones
	inline   json.RawMessage
	ref      *catalog.Reference
}

// from is the name of the data in later intents.
func (m *material) from() string {
	if m.ref != nil && m.ref.FileID != "" {
		return m.ref.FileID
	}
	return m.intentID
}

// labelledResult is a result as a model reads it: the data, or the size and the first lines of
// data that is too large to be inline.
type labelledResult struct {
	Label     string          `json:"label"`
	Result    json.RawMessage `json:"result,omitempty"`
	SizeBytes int64           `json:"size_bytes,omitempty"`
	Sample    []string        `json:"sample,omitempty"`
	Format    string          `json:"format,omitempty"` // json: one document; jsonl: one a line
	// Status is catalog.Partial if sources of the data have failed.
	Status string `json:"status,omitempty"`
	Note   string `json:"note,omitempty"`
	Cut
	// AlreadyDone: an earlier task of the step has made the call.
	AlreadyDone bool `json:"already_done,omitempty"`
}

// keep gives data a label, by which later calls name it.
func (w *worker) keep(label, intentID string, inline json.RawMessage, ref *catalog.Reference) labelledResult {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.material[label] = &material{intentID, inline, ref}
	if ref == nil {
		return labelledResult{Label: label, Result: inline}
	}
	format := "json"
	if oneDocumentALine(ref.Sample) {
		format = "jsonl"
	}
	return labelledResult{Label: label, SizeBytes: ref.SizeBytes, Sample: ref.Sample, Format: format, Cut: cutOf(true, ref.Sample...)}
}

// keptAs is keep for the result of a skill, with its status.
func (w *worker) keptAs(status, label, intentID string, inline json.RawMessage, ref *catalog.Reference) labelledResult {
	kept := w.keep(label, intentID, inline, ref)
	if kept.Status = status; status == catalog.Partial {
		kept.Note = "some of its sources failed: say what may be missing, without technical words"
	}
	return kept
}

// oneDocumentALine reports whether each of the first two lines is a JSON document.
func oneDocumentALine(lines []string) bool {
	return len(lines) > 1 && json.Valid([]byte(lines[0])) && json.Valid([]byte(lines[1]))
}

// find returns data by its label. An artifact that the user's message names becomes a file of the
// step.
func (w *worker) find(ctx context.Context, label string) (*material, error) {
	w.mu.Lock()
	m, ok := w.material[label]
	known := slices.SortedFunc(maps.Keys(w.material), func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	w.mu.Unlock()
	switch {
	case ok:
		return m, nil
	case artifactName.MatchString(label) && strings.Contains(w.req.UserTask, label):
	case len(known) == 0:
		return nil, mistaken("no result has a label yet, so none is %q", label)
	default:
		return nil, mistaken("no result has the label %q; there are: %s", label, strings.Join(known, ", "))
	}
	var got catalog.WriteTempResult
	a, err := w.submit(atCall(ctx, ""), "write_temp", catalog.WriteTemp{From: label}, &got)
	if err != nil {
		return nil, err
	}
	w.keep(label, a.IntentID, nil, &catalog.Reference{FileID: got.FileID, SizeBytes: got.SizeBytes, SHA256: got.SHA256})
	return w.find(ctx, label)
}

var artifactName = regexp.MustCompile(`^cas://sha256:[0-9a-f]{64}$`)

// namesArtifact reports whether the user's message names an artifact, such as its own whole text.
func (w *worker) namesArtifact() bool { return strings.Contains(w.req.UserTask, "cas://sha256:") }
