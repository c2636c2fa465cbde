package schemas

import (
	"regexp"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// compactPattern is that of a compact JWS. Every order carries one, the grant, and
// regexp takes longer over its thousand characters than the validator over all
// the rest.
const compactPattern = `^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$`

// compilePattern is the regular expression engine of our schemas: regexp, but
// for one pattern.
func compilePattern(pattern string) (jsonschema.Regexp, error) {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, err
	}
	if pattern == compactPattern {
		return &compact{re}, nil
	}
	return re, nil
}

// compact matches compactPattern.
type compact struct{ *regexp.Regexp }

// MatchString implements jsonschema.Regexp.
func (*compact) MatchString(s string) bool {
	dots, last := 0, -1
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-':
		case c == '.' && i > last+1:
			dots, last = dots+1, i
		default:
			return false
		}
	}
	return dots == 2 && last < len(s)-1
}
