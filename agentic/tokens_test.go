package agentic

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/bus"
)

// TestTokens: pieces within 50 ms are one frame, the end of a text is withheld until more has
// arrived, and text withdrawn by the model is withdrawn on display.
func TestTokens(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var shown []bus.ContentData
	s := &tokens{show: func(d bus.ContentData) { shown = append(shown, d) }, now: func() time.Time { return now }}
	long := strings.Repeat("x", holdBack)
	for _, piece := range []struct {
		after time.Duration
		event model.Event
	}{
		{0, model.Event{Text: "never shown"}},
		{time.Millisecond, model.Event{Reset: true}},
		{0, model.Event{Text: "There "}},
		{20 * time.Millisecond, model.Event{Text: "are " + long}},
		{40 * time.Millisecond, model.Event{Text: "nine"}},
		{time.Millisecond, model.Event{Text: " or so"}},
		{time.Millisecond, model.Event{Reset: true}},
		{time.Millisecond, model.Event{Text: "There are ten."}},
	} {
		now = now.Add(piece.after)
		s.take(piece.event)
	}
	s.flush(true)
	s.flush(true)
	want := []bus.ContentData{{Text: "There are " + long[:4]}, {Reset: true}, {Text: "There are ten."}}
	if d := cmp.Diff(want, shown); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
