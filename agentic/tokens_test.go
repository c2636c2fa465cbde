package agentic

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/internal/bus"
)

// TestTokens: pieces that come within 50 ms are one frame, and what a model withdraws
// is withdrawn on display.
func TestTokens(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var shown []bus.ContentData
	s := &tokens{show: func(d bus.ContentData) { shown = append(shown, d) }, now: func() time.Time { return now }}
	for _, piece := range []struct {
		after time.Duration
		event model.Event
	}{
		{0, model.Event{Text: "There "}},
		{20 * time.Millisecond, model.Event{Text: "are "}},
		{40 * time.Millisecond, model.Event{Text: "nine"}},
		{time.Millisecond, model.Event{Text: " or so"}},
		{time.Millisecond, model.Event{Reset: true}},
		{time.Millisecond, model.Event{Text: "There are ten."}},
	} {
		now = now.Add(piece.after)
		s.take(piece.event)
	}
	s.flush()
	s.flush()
	want := []bus.ContentData{{Text: "There are nine"}, {Reset: true}, {Text: "There are ten."}}
	if d := cmp.Diff(want, shown); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
