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
	since     time.Time       // of the first piece after them
	displayed bool            // something of the text was shown
}

// take adds a piece. Text that the model withdraws is withdrawn on display.
func (t *tokens) take(e model.Event) {
	if e.Reset {
		t.withdraw()
		return
	}
	if t.text.Len() == t.shown {
		t.since = t.now()
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
	t.shown, t.displayed = 0, false
}

// flush shows the gathered text; whole means that the text has no more pieces.
func (t *tokens) flush(whole bool) {
	fit, to := guardedFrom(t.text.String(), t.shown, whole)
	t.shown, t.since = to, t.now()
	if fit != "" {
		t.displayed = true
		t.show(bus.ContentData{Text: fit})
	}
}
