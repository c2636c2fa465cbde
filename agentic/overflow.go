package agentic

import (
	"context"
	"encoding/json"
	"errors"

	"aob.dev/writ/agentic/model"
)

// Where a conversation is longer than its model takes, the oldest results of calls give
// way. What the user said and the effects of other steps are no results, and stay.

// bytesPerToken is what a text is taken for: tokenizers differ by model.
const bytesPerToken = 4

// respond sends a request with tools and keeps the reply in it. A conversation that the
// model finds too long all the same is sent once more, shortened.
func (l *loop) respond(ctx context.Context, tools []*tool) (*model.Response, error) {
	l.offer(tools)
	if l.fit() {
		l.offer(tools) // some may be of use only now
	}
	reply, err := l.request(ctx)
	var failed *model.Error
	if errors.As(err, &failed) && failed.Overflow && l.shortenAll() {
		reply, err = l.request(ctx)
	}
	if err != nil {
		return nil, err
	}
	l.req.Messages = append(l.req.Messages, model.Message{Role: model.RoleAssistant, Text: reply.Text, Calls: reply.Calls})
	return reply, nil
}

// fit shortens the request to what its model is said to take, an eighth left for the
// reply, as far as results can give way. It says whether any did.
func (l *loop) fit() (shorter bool) {
	limit := model.ContextTokens(l.model) * bytesPerToken / 8 * 7
	for limit > 0 && l.size() > limit && l.shorten(len(l.req.Messages)) {
		shorter = true
	}
	return shorter
}

// size of the request in bytes.
func (l *loop) size() int {
	n := len(l.req.System)
	for _, m := range l.req.Messages {
		n += len(m.Text)
		for _, c := range m.Calls {
			n += len(c.Name) + len(c.Arguments)
		}
	}
	for _, t := range l.req.Tools {
		n += len(t.Name) + len(t.Description) + len(t.Schema)
	}
	return n
}

// shownOfOld is how much of a result stays that gave way.
const shownOfOld = 500

// oldResult stands for a result that gave way. By its label read_lines and exec_python
// still have all of it.
type oldResult struct {
	From      string `json:"from,omitempty"`
	SizeBytes int    `json:"size_bytes"`
	Beginning string `json:"beginning"`
}

// shortenAll shortens all results before the last reply, or else the first of that. It says
// whether there were any.
func (l *loop) shortenAll() (shorter bool) {
	last := len(l.req.Messages)
	for last > 0 && l.req.Messages[last-1].Role == model.RoleTool {
		last--
	}
	for l.shorten(last) {
		shorter = true
	}
	return shorter || l.shorten(len(l.req.Messages))
}

// shorten leaves the beginning of the oldest result that is whole, of those before a
// message, and says whether there was one.
func (l *loop) shorten(before int) bool {
	for i := range l.req.Messages[:before] {
		m := &l.req.Messages[i]
		if m.Role != model.RoleTool || len(m.Text) <= 2*shownOfOld || l.short[i] {
			continue
		}
		var r labelled
		_ = json.Unmarshal([]byte(m.Text), &r) // one without a label stays without
		m.Text = string(compact(oldResult{r.Label, len(m.Text), cut(m.Text, shownOfOld)}))
		if l.short == nil {
			l.short = make(map[int]bool)
		}
		l.short[i] = true
		return true
	}
	return false
}
