package agentic

import (
	"slices"

	"aob.dev/writ/internal/visible"
)

// Cut says to a model that a result is not whole. Each result that was cut says so in this form.
type Cut struct {
	More bool `json:"more,omitempty"` // there is more than is shown
	// LineCutAt is after how many bytes lines end, or texts, of which one did, with "…".
	LineCutAt int `json:"line_cut_at,omitempty"`
}

// cutOf describes texts that were cut at a limit if they were longer.
func cutOf(more bool, limit int, texts ...string) Cut {
	if slices.ContainsFunc(texts, func(s string) bool { return visible.IsCut(s, limit) }) {
		return Cut{more, limit}
	}
	return Cut{More: more}
}
