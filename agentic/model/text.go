package model

import (
	"strings"
	"unicode"
)

const (
	thinkBegins = "<think>"
	thinkEnds   = "</think>"
)

// thinking removes a model's thinking, <think>…</think>, from the beginning of a streamed text,
// and blanks before the text. The zero value is ready.
type thinking struct {
	held    string // possibly a tag, or the beginning of one
	inside  bool
	started bool // the text has begun
}

// next accepts a piece and returns the part of the text that is certain now.
func (t *thinking) next(piece string) string {
	if t.started {
		return piece
	}
	t.held += piece
	for {
		if t.inside {
			_, after, ended := strings.Cut(t.held, thinkEnds)
			if !ended {
				t.held = t.held[max(0, len(t.held)-len(thinkEnds)+1):]
				return ""
			}
			t.held, t.inside = after, false
		}
		t.held = strings.TrimLeftFunc(t.held, unicode.IsSpace)
		after, begins := strings.CutPrefix(t.held, thinkBegins)
		switch {
		case begins:
			t.held, t.inside = after, true
		case strings.HasPrefix(thinkBegins, t.held):
			return ""
		default:
			t.started = true
			return t.held
		}
	}
}

// end returns the withheld rest; the text has no more pieces.
func (t *thinking) end() string {
	if t.started || t.inside {
		return ""
	}
	t.started = true
	return t.held
}

// unfence removes a code fence from a JSON object; other texts are unchanged.
func unfence(s string) string {
	body, opened := strings.CutPrefix(strings.TrimSpace(s), "```")
	body, closed := strings.CutSuffix(body, "```")
	if !opened || !closed {
		return s
	}
	body = strings.TrimSpace(strings.TrimLeftFunc(body, unicode.IsLetter)) // the language
	if !strings.HasPrefix(body, "{") {
		return s
	}
	return body
}
