package agentic

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// seenImage is an image of a result.
type seenImage struct {
	label string // of the result
	intents.Image
}

// Bounds of the images that a run shows its model: their number, and their bytes together.
const (
	maxSeen      = 8
	maxSeenBytes = 4 << 20
)

// sees takes the images of a call's answer. No record has them: a later task of the step has none.
func (w *worker) sees(label string, a *intents.Answer) {
	var details catalog.SkillCallDetails
	if len(a.Details) == 0 || json.Unmarshal(a.Details, &details) != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, x := range details.Images {
		w.seen = append(w.seen, seenImage{label, x})
	}
}

// takeSeen returns the images of the calls since it was last asked, by the order of the results.
func (w *worker) takeSeen() []seenImage {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen := w.seen
	w.seen = nil
	slices.SortStableFunc(seen, func(a, b seenImage) int {
		return cmp.Or(cmp.Compare(len(a.label), len(b.label)), cmp.Compare(a.label, b.label))
	})
	return seen
}

// showImages adds the images of the last results to the conversation, after all results of the reply.
func (l *loop) showImages() {
	if l.seen == nil {
		return
	}
	m := model.Message{Role: model.RoleUser}
	for _, x := range l.seen() {
		m.Text += fmt.Sprintf("\n%s of result %s: %d bytes, file %s", x.MIMEType, x.label, len(x.Data), x.FileID)
		if l.shown == maxSeen || l.shownBytes+len(x.Data) > maxSeenBytes {
			m.Text += ", left out"
			continue
		}
		l.shown, l.shownBytes = l.shown+1, l.shownBytes+len(x.Data)
		m.Shown = append(m.Shown, "data:"+x.MIMEType+";base64,"+base64.StdEncoding.EncodeToString(x.Data))
	}
	if m.Text != "" {
		m.Text = strings.TrimPrefix(m.Text, "\n")
		l.req.Messages = append(l.req.Messages, m)
	}
}

// hideImages takes the images of results out of the conversation. It reports whether there were any.
func (l *loop) hideImages() (any bool) {
	for i := range l.req.Messages {
		if m := &l.req.Messages[i]; len(m.Shown) > 0 {
			m.Text, m.Shown, any = m.Text+"\n(left out)", nil, true
		}
	}
	return any
}
