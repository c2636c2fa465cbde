package agentic

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/bus"
)

// TestTokens: the first piece is shown at once, pieces within 50 ms after one are one frame, what may
// begin a key is withheld until more has arrived, and text withdrawn by the model is withdrawn on
// display.
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
		{20 * time.Millisecond, model.Event{Text: "nine"}},
		{20 * time.Millisecond, model.Event{Text: " or s"}},
		{60 * time.Millisecond, model.Event{Text: "k"}},
		{60 * time.Millisecond, model.Event{Text: "ip"}},
		{time.Millisecond, model.Event{Tool: "plan", Text: "{}"}},
		{time.Millisecond, model.Event{Reset: true}},
		{time.Millisecond, model.Event{Text: "There are ten."}},
	} {
		now = now.Add(piece.after)
		s.take(piece.event)
	}
	s.flush(true)
	s.flush(true)
	want := []bus.ContentData{{Text: "There "}, {Text: "are nine or "}, {Text: "skip"}, {Reset: true}, {Text: "There are ten."}}
	if d := cmp.Diff(want, shown); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
