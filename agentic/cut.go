package agentic

import (
	"slices"

	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/visible"
)

// Cut says to a model that a result is not whole. Each result that was cut says so in this form.
type Cut struct {
	More bool `json:"more,omitempty"` // there is more than is shown
	// LineCutAt is after how many bytes lines end, or texts, of which one did, with "…".
	LineCutAt int `json:"line_cut_at,omitempty"`
}

// cutOf describes lines that were cut if they were longer than catalog.MaxLine.
func cutOf(more bool, lines ...string) Cut {
	if slices.ContainsFunc(lines, func(s string) bool { return visible.IsCut(s, catalog.MaxLine) }) {
		return Cut{more, catalog.MaxLine}
	}
	return Cut{More: more}
}
