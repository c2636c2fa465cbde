package agentic

import (
	"strings"
	"time"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/internal/bus"
)

// tokenTime is how long pieces of a text are gathered into one frame.
const tokenTime = 50 * time.Millisecond

// tokens shows the text of a reply while it comes.
type tokens struct {
	show  func(bus.ContentData)
	now   func() time.Time
	text  strings.Builder
	since time.Time // of the first piece that is not shown yet
}

// take gathers a piece. Text that the model withdraws is withdrawn on display.
func (t *tokens) take(e model.Event) {
	if e.Reset {
		t.text.Reset()
		t.show(bus.ContentData{Reset: true})
		return
	}
	if t.text.Len() == 0 {
		t.since = t.now()
	}
	t.text.WriteString(e.Text)
	if t.now().Sub(t.since) >= tokenTime {
		t.flush()
	}
}

// flush shows what was gathered.
func (t *tokens) flush() {
	if t.text.Len() > 0 {
		t.show(bus.ContentData{Text: t.text.String()})
		t.text.Reset()
	}
}
