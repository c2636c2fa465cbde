package schemas

import (
	"errors"
	"regexp"
	"regexp/syntax"
	"strings"
	"sync/atomic"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Bounds of the patterns of a foreign schema. Matching takes time in proportion to the text
// times the compiled program, and a{1000} is a thousand instructions.
const (
	maxPattern      = 1 << 10 // bytes of one
	maxInstructions = 1 << 14 // total
)

// patterns is the regular expression engine of one schema.
type patterns struct {
	sizes  map[string]int // pattern to instructions; written only while compiling
	total  int
	closed atomic.Bool
}

func newPatterns() *patterns { return &patterns{sizes: map[string]int{}} }

func (p *patterns) size(re jsonschema.Regexp) int { return p.sizes[re.String()] }

// compile is called by the metaschema, by the compiler, and, once closed, by instances that old
// drafts require to be in format regex.
func (p *patterns) compile(pattern string) (jsonschema.Regexp, error) {
	if len(pattern) > maxPattern {
		return nil, errors.New("pattern is too long")
	}
	pattern = inRE2(pattern)
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, errors.New("the pattern is no regular expression of RE2, which has no lookahead, lookbehind and backreference")
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, errors.New("pattern cannot be compiled")
	}
	if !p.closed.Load() {
		if _, ok := p.sizes[pattern]; !ok {
			p.sizes[pattern] = len(program.Inst)
			p.total += len(program.Inst)
		}
	}
	if p.total > maxInstructions || len(program.Inst) > maxInstructions {
		return nil, errors.New("patterns are too large")
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, err
	}
	return re, nil
}

// foreignEscape matches a pair of backslashes, or what ECMAScript and Python write in another way than RE2.
var foreignEscape = regexp.MustCompile(`\\\\|\\u([0-9A-Fa-f]{4})|\\u\{([0-9A-Fa-f]{1,6})\}|\\Z`)

// inRE2 writes the escapes of ECMAScript and Python in a pattern as RE2 has them.
func inRE2(pattern string) string {
	return foreignEscape.ReplaceAllStringFunc(pattern, func(escape string) string {
		switch digits := strings.Trim(escape[2:], "{}"); {
		case escape[1] == '\\':
			return escape
		case escape[1] == 'Z':
			return `\z`
		default:
			return `\x{` + digits + `}`
		}
	})
}
