package model

import (
	"strings"
	"unicode"
)

const (
	thinkBegins = "<think>"
	thinkEnds   = "</think>"
)

// thinking takes what a model thought aloud, <think>…</think>, off the beginning of a
// text that comes in pieces, and blanks before the text. The zero value is ready.
type thinking struct {
	held   string // what may yet be a tag, or the beginning of one
	inside bool
	over   bool // the text has begun
}

// next takes a piece and gives what of the text is certain by now.
func (t *thinking) next(piece string) string {
	if t.over {
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
			t.over = true
			return t.held
		}
	}
}

// end gives what was held back; the text has no more pieces.
func (t *thinking) end() string {
	if t.over || t.inside {
		return ""
	}
	t.over = true
	return t.held
}

// unfence takes a code fence off a JSON object; anything else stays as it is.
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
