package agentic

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"aob.dev/writ/agentic/model"
)

// spoken shows the answer of a reply while it is written: the reply's text, or a text member of a
// call that is an output. What is said before such a call is withdrawn.
type spoken struct {
	show         *tokens
	text         bool // a reply without calls is the answer
	tool, member string

	from *memberReader // of the call that is being written; nil: none
	call int
}

// take handles a piece of a reply.
func (s *spoken) take(e model.Event) {
	switch {
	case e.Reset:
		s.from = nil
		s.show.withdraw()
	case e.Tool == "" && s.text && s.from == nil:
		s.show.take(e)
	case e.Tool == s.tool && e.Tool != "":
		if s.from == nil {
			s.from, s.call = &memberReader{name: s.member}, e.Call
		}
		if e.Call != s.call {
			return
		}
		begun := s.from.begun
		if piece := s.from.next(e.Text); piece != "" {
			if !begun {
				s.show.withdraw()
			}
			s.show.take(model.Event{Text: piece})
		}
	}
}

// calling reports whether the answer in a call has been shown.
func (s *spoken) calling() bool { return s.from != nil && s.from.begun }

// memberReader reads the text of one member of a JSON object of which pieces arrive. What is no such
// object has no text: only the whole call is judged.
type memberReader struct {
	name string

	begun  bool // the text has
	ended  bool // nothing more is of interest
	depth  int
	quoted bool            // inside a string
	escape bool            // after its backslash
	string strings.Builder // at depth 1: the last string, as it is written
	key    string          // the last string before a colon
	text   string          // written and not decoded yet
}

// next returns what a piece adds to the text.
func (r *memberReader) next(piece string) string {
	for i := 0; i < len(piece) && !r.ended; i++ {
		r.step(piece[i])
	}
	n := len(r.text)
	if !r.ended {
		n = decodable(r.text)
	}
	var out string
	if json.Unmarshal([]byte(`"`+r.text[:n]+`"`), &out) != nil {
		r.ended = true
		return ""
	}
	r.text, r.begun = r.text[n:], r.begun || out != ""
	return out
}

func (r *memberReader) step(b byte) {
	switch {
	case r.quoted && !r.escape && b == '"':
		r.quoted, r.ended = false, r.wanted()
	case r.quoted && r.wanted():
		r.escape = !r.escape && b == '\\'
		r.text += string([]byte{b})
	case r.quoted:
		r.escape = !r.escape && b == '\\'
		if r.depth == 1 {
			r.string.WriteByte(b)
		}
	case b == '"':
		r.quoted = true
		r.string.Reset()
	case b == ':' && r.depth == 1:
		r.key = r.string.String()
	case b == ',' && r.depth == 1:
		r.key = ""
	case b == '{' || b == '[':
		r.depth++
	case b == '}' || b == ']':
		r.depth--
	}
}

// wanted reports whether a string is the value of the member.
func (r *memberReader) wanted() bool { return r.depth == 1 && r.key == r.name }

// decodable returns how much of a string, as JSON writes it, ends with a whole character.
func decodable(s string) int {
	for i := 0; i < len(s); {
		size := 2
		switch {
		case s[i] != '\\':
			if !utf8.FullRuneInString(s[i:]) {
				return i
			}
			_, size = utf8.DecodeRuneInString(s[i:])
		case len(s) > i+1 && s[i+1] == 'u':
			if size = 6; len(s) > i+3 && strings.ContainsRune("dD", rune(s[i+2])) && strings.ContainsRune("89abAB", rune(s[i+3])) {
				size = 12 // the first of a pair
			}
		}
		if i += size; i > len(s) {
			return i - size
		}
	}
	return len(s)
}
