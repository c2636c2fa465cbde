package agentic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/internal/visible"
)

// If a conversation exceeds its model's context, the oldest results of calls are shortened, and then
// the oldest messages of the history are left out. The user's new message and the effects of other
// steps stay.

// respond sends a request with tools and appends the reply to it. The request is shortened to the
// model's configured context; if the model still finds it too long, it is sent once more with no
// older result whole, or without the older half of the history.
func (l *loop) respond(ctx context.Context, tools []*tool) (*model.Response, error) {
	l.offer(tools)
	last := len(l.req.Messages)
	if limit := model.ContextTokens(l.model) * model.BytesPerToken / 8 * 7; limit > 0 { // an eighth is for the reply
		if l.shorten(last, limit) {
			l.offer(tools) // some tools become usable only now
		}
		last -= l.forget(limit)
	}
	reply, err := l.request(ctx)
	for last > 0 && (l.req.Messages[last-1].Role == model.RoleTool || len(l.req.Messages[last-1].Shown) > 0) {
		last--
	}
	if failed, ok := errors.AsType[*model.Error](err); ok && failed.Overflow {
		hidden := l.hideImages()
		if l.shorten(last, 0) || l.shorten(len(l.req.Messages), 0) || l.forget(l.size()/2) > 0 || hidden {
			reply, err = l.request(ctx)
		}
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

// leftOut is the message in place of those of the history that a request leaves out.
const leftOut = "[%d earlier messages left out]"

// forget leaves out the oldest messages of the history, which are those before the user's new one,
// until the request has at most limit bytes or none is left. It returns by how many messages the
// conversation is shorter.
func (l *loop) forget(limit int) (shorter int) {
	said := l.req.Messages
	now := slices.IndexFunc(said, func(m model.Message) bool { return m.Note != "" })
	from, gone := 1, 0 // after the context
	if now > from && said[from].Role == model.RoleSystem {
		if n, _ := fmt.Sscanf(said[from].Text, leftOut, &gone); n == 1 {
			from++
		}
	}
	first, size := from, l.size()
	for ; first < now && size > limit; first++ {
		size -= len(said[first].Text)
	}
	if first == from {
		return 0
	}
	mark := model.Message{Role: model.RoleSystem, Text: fmt.Sprintf(leftOut, gone+first-from)}
	l.req.Messages = append([]model.Message{said[0], mark}, said[first:]...)
	shorter = len(said) - len(l.req.Messages)
	short := make(map[int]bool)
	for i := range l.short {
		short[i-shorter] = true
	}
	l.short = short
	return shorter
}
