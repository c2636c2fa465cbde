package agentic

import (
	"cmp"
	"strings"
	"time"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/bus"
)

// tokenTime is how long pieces of a text are gathered into one frame.
const tokenTime = 50 * time.Millisecond

// tokens displays the text of a reply while it is written, guarded.
type tokens struct {
	show      func(bus.ContentData)
	now       func() time.Time
	every     time.Duration   // how long pieces are gathered; 0: tokenTime
	text      strings.Builder // of the reply
	shown     int             // bytes of it that are processed
	since     time.Time       // of the last piece that was shown; zero: none was
	displayed bool            // something of the text was shown
}

// take adds a piece, and shows it unless another was shown just before. Text that the model withdraws is withdrawn on display.
func (t *tokens) take(e model.Event) {
	if e.Reset {
		t.withdraw()
		return
	}
	if e.Tool != "" {
		return
	}
	t.text.WriteString(e.Text)
	if t.now().Sub(t.since) >= cmp.Or(t.every, tokenTime) {
		t.flush(false)
	}
}

// withdraw starts over.
func (t *tokens) withdraw() {
	if t.displayed {
		t.show(bus.ContentData{Reset: true})
	}
	t.text.Reset()
	t.shown, t.displayed, t.since = 0, false, time.Time{}
}

// flush shows the gathered text; whole means that the text has no more pieces.
func (t *tokens) flush(whole bool) {
	fit, to := guardedFrom(t.text.String(), t.shown, whole)
	t.shown = to
	if fit != "" {
		t.displayed, t.since = true, t.now()
		t.show(bus.ContentData{Text: fit})
	}
}
