package agentic

import (
	"context"
	"encoding/json"
	"errors"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/internal/visible"
)

// If a conversation exceeds its model's context, the oldest results of calls are shortened. The
// user's messages and the effects of other steps are not results, and stay.

// respond sends a request with tools and appends the reply to it. The request is shortened to the
// model's configured context; if the model still finds it too long, it is sent once more with no
// older result whole.
func (l *loop) respond(ctx context.Context, tools []*tool) (*model.Response, error) {
	l.offer(tools)
	last := len(l.req.Messages)
	if limit := model.ContextTokens(l.model) * model.BytesPerToken / 8 * 7; limit > 0 && l.shorten(last, limit) { // an eighth is for the reply
		l.offer(tools) // some tools become usable only now
	}
	reply, err := l.request(ctx)
	for last > 0 && l.req.Messages[last-1].Role == model.RoleTool {
		last--
	}
	if failed, ok := errors.AsType[*model.Error](err); ok && failed.Overflow && (l.shorten(last, 0) || l.shorten(len(l.req.Messages), 0)) {
		reply, err = l.request(ctx)
	}
	if err != nil {
		return nil, err
	}
	l.appendReply(reply)
	return reply, nil
}

func (l *loop) appendReply(r *model.Response) {
	l.req.Messages = append(l.req.Messages, model.Message{Role: model.RoleAssistant, Text: r.Text, Calls: r.Calls, Opaque: r.Opaque})
}

// size returns the size of the request in bytes.
func (l *loop) size() int {
	n := len(l.req.System)
	for _, m := range l.req.Messages {
		n += len(m.Note) + len(m.Text)
		for _, c := range m.Calls {
			n += len(c.Name) + len(c.Arguments)
		}
	}
	for _, t := range l.req.Tools {
		n += len(t.Name) + len(t.Description) + len(t.Schema)
	}
	return n
}

// shownOfOld is how much of a shortened result stays.
const shownOfOld = 500

// oldResult replaces a shortened result. read_lines and exec_python can still read all of it by
// its label.
type oldResult struct {
	From      string `json:"from,omitempty"`
	SizeBytes int    `json:"size_bytes"`
	Beginning string `json:"beginning"`
	Cut
}

// shorten truncates results, the oldest first, among those before a message and until the request
// has at most limit bytes. It reports whether any was shortened.
func (l *loop) shorten(before, limit int) (shorter bool) {
	for i := range l.req.Messages[:before] {
		m := &l.req.Messages[i]
		if m.Role != model.RoleTool || len(m.Text) <= 2*shownOfOld || l.short[i] || l.size() <= limit {
			continue
		}
		var r labelledResult
		_ = json.Unmarshal([]byte(m.Text), &r) // one without a label stays without
		m.Text = string(compact(oldResult{r.Label, len(m.Text), visible.Cut(m.Text, shownOfOld), Cut{More: true}}))
		if l.short == nil {
			l.short = make(map[int]bool)
		}
		l.short[i], shorter = true, true
	}
	return shorter
}
