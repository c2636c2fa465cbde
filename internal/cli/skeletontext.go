package cli

import (
	"regexp/syntax"
	"strings"
	"time"

	"aob.dev/writ/intents"
)

// specimenText is a text that a schema takes: the shortest of its pattern, else
// one of its least length.
func specimenText(s map[string]any) string {
	if s["format"] == "date-time" {
		return intents.FormatTime(time.Now())
	}
	if pattern, ok := s["pattern"].(string); ok {
		if re, err := syntax.Parse(pattern, syntax.Perl); err == nil {
			return matching(re.Simplify())
		}
	}
	least, _ := s["minLength"].(float64)
	return strings.Repeat("x", int(min(least, 64)))
}

// matching is a short text that an expression matches, of letters where it may be.
// Simplify leaves no repetitions with bounds.
func matching(re *syntax.Regexp) string {
	switch re.Op {
	case syntax.OpLiteral:
		return string(re.Rune)
	case syntax.OpCharClass:
		return string(letterOf(re.Rune))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return "x"
	case syntax.OpConcat, syntax.OpCapture, syntax.OpPlus:
		var b strings.Builder
		for _, sub := range re.Sub {
			b.WriteString(matching(sub))
		}
		return b.String()
	case syntax.OpAlternate:
		return matching(re.Sub[0])
	default: // anchors, and what may be left out
		return ""
	}
}

// letterOf a class, given as ranges: one that is easy to see, if it has one.
func letterOf(ranges []rune) rune {
	for _, wanted := range "xa0" {
		for i := 0; i+1 < len(ranges); i += 2 {
			if ranges[i] <= wanted && wanted <= ranges[i+1] {
				return wanted
			}
		}
	}
	if len(ranges) == 0 {
		return 'x'
	}
	return ranges[0]
}
