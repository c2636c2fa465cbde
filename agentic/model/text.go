package model

import (
	"strings"
	"unicode"
)

// thinkTags enclose what models think.
var thinkTags = []string{"think", "thinking", "thought", "reasoning"}

// thinking removes a model's thinking, such as <think>…</think>, from the beginning of a streamed
// text, and blanks before the text. The zero value is ready.
type thinking struct {
	held    string // possibly a tag, or the beginning of one
	ends    string // the closing tag that is waited for
	started bool   // the text has begun
}

// next accepts a piece and returns the part of the text that is certain now.
func (t *thinking) next(piece string) string {
	if t.started {
		return piece
	}
	t.held += piece
	for {
		if t.ends != "" {
			_, after, ended := strings.Cut(t.held, t.ends)
			if !ended {
				t.held = t.held[max(0, len(t.held)-len(t.ends)+1):]
				return ""
			}
			t.held, t.ends = after, ""
		}
		t.held = strings.TrimLeftFunc(t.held, unicode.IsSpace)
		maybe := false
		for _, tag := range thinkTags {
			begins := "<" + tag + ">"
			if after, begun := strings.CutPrefix(t.held, begins); begun {
				t.held, t.ends = after, "</"+tag+">"
				break
			}
			maybe = maybe || strings.HasPrefix(begins, t.held)
		}
		switch {
		case t.ends != "":
		case maybe:
			return ""
		default:
			t.started = true
			return t.held
		}
	}
}

// end returns the withheld rest; the text has no more pieces.
func (t *thinking) end() string {
	if t.started || t.ends != "" {
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
