package schemas

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Pattern is a regular expression of ours. Most are runs of characters, such as ^sha256:[0-9a-f]{64}$:
// they are matched without a machine.
type Pattern struct {
	re    *regexp.Regexp
	forms []form // the text is one of them; none: re decides
}

var _ jsonschema.Regexp = (*Pattern)(nil)

// form is a text as runs of characters, one after another.
type form []run

// run is min to max characters of a set; max < 0: any number. Which other characters than those of
// ASCII are in a set is left to the regular expression.
type run struct {
	set      [utf8.RuneSelf]bool
	min, max int
}

// maxForms bounds the alternatives of a pattern that are told apart.
const maxForms = 4

// MustPattern compiles a pattern and panics if it is invalid.
func MustPattern(text string) *Pattern {
	p, err := compilePattern(text)
	if err != nil {
		panic(err)
	}
	return p
}

func compilePattern(text string) (*Pattern, error) {
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, err
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	p := &Pattern{re: re}
	if parsed.Op == syntax.OpConcat && len(parsed.Sub) > 1 && parsed.Sub[0].Op == syntax.OpBeginText && parsed.Sub[len(parsed.Sub)-1].Op == syntax.OpEndText {
		if forms, ok := sequence(parsed.Sub[1 : len(parsed.Sub)-1]); ok && !slices.ContainsFunc(forms, form.ambiguous) {
			p.forms = forms
		}
	}
	return p, nil
}

func regexpEngine(text string) (jsonschema.Regexp, error) {
	p, err := compilePattern(text)
	if err != nil {
		return nil, err
	}
	return p, nil
}

// String is the pattern as written.
func (p *Pattern) String() string { return p.re.String() }

// MatchString reports whether the pattern matches.
func (p *Pattern) MatchString(s string) bool {
	if len(p.forms) == 0 {
		return p.re.MatchString(s)
	}
	for _, f := range p.forms {
		matches, ascii := f.match(s)
		if !ascii {
			return p.re.MatchString(s)
		}
		if matches {
			return true
		}
	}
	return false
}

// match is not known of a text in which a character outside ASCII is met.
func (f form) match(s string) (matches, ascii bool) {
	at := 0
	for i := range f {
		r, start := &f[i], at
		for at < len(s) && (r.max < 0 || at-start < r.max) {
			if s[at] >= utf8.RuneSelf {
				return false, false
			}
			if !r.set[s[at]] {
				break
			}
			at++
		}
		if at-start < r.min {
			return false, at == len(s) || s[at] < utf8.RuneSelf
		}
	}
	return at == len(s), at == len(s) || s[at] < utf8.RuneSelf
}

// ambiguous reports whether a run could leave characters to those after it: they would have to be tried.
func (f form) ambiguous() bool {
	for i, r := range f {
		if r.min == r.max {
			continue
		}
		for _, next := range f[i+1:] {
			for c := range r.set {
				if r.set[c] && next.set[c] {
					return true
				}
			}
			if next.min > 0 {
				break
			}
		}
	}
	return false
}

// sequence are the forms of expressions after one another.
func sequence(all []*syntax.Regexp) ([]form, bool) {
	forms := []form{nil}
	for _, re := range all {
		next, ok := formsOf(re)
		if !ok || len(forms)*len(next) > maxForms {
			return nil, false
		}
		var longer []form
		for _, f := range forms {
			for _, n := range next {
				longer = append(longer, slices.Concat(f, n))
			}
		}
		forms = longer
	}
	return forms, true
}

func formsOf(re *syntax.Regexp) (forms []form, ok bool) {
	switch re.Op {
	case syntax.OpConcat:
		return sequence(re.Sub)
	case syntax.OpCapture:
		return formsOf(re.Sub[0])
	case syntax.OpAlternate:
		for _, sub := range re.Sub {
			some, ok := formsOf(sub)
			if !ok {
				return nil, false
			}
			forms = append(forms, some...)
		}
		return forms, true
	case syntax.OpLiteral, syntax.OpCharClass:
		f, ok := characters(re)
		return []form{f}, ok
	case syntax.OpStar:
		return repeated(re.Sub[0], 0, -1)
	case syntax.OpPlus:
		return repeated(re.Sub[0], 1, -1)
	case syntax.OpQuest:
		return repeated(re.Sub[0], 0, 1)
	case syntax.OpRepeat:
		return repeated(re.Sub[0], re.Min, re.Max)
	default:
		return nil, false
	}
}

// repeated is one character of a set repeated, or anything a fixed number of times.
func repeated(re *syntax.Regexp, least, most int) ([]form, bool) {
	if f, ok := characters(re); ok && len(f) == 1 {
		f[0].min, f[0].max = least, most
		return []form{f}, true
	}
	if least != most {
		return nil, false
	}
	return sequence(slices.Repeat([]*syntax.Regexp{re}, least))
}

// characters are the runs of a literal, or the one of a class.
func characters(re *syntax.Regexp) (f form, ok bool) {
	switch {
	case re.Op == syntax.OpLiteral && re.Flags&syntax.FoldCase == 0:
		for _, c := range re.Rune {
			if c >= utf8.RuneSelf {
				return nil, false
			}
			r := run{min: 1, max: 1}
			r.set[c] = true
			f = append(f, r)
		}
		return f, true
	case re.Op == syntax.OpCharClass:
		r := run{min: 1, max: 1}
		for i := 0; i < len(re.Rune); i += 2 {
			for c := re.Rune[i]; c <= min(re.Rune[i+1], utf8.RuneSelf-1); c++ {
				r.set[c] = true
			}
		}
		return form{r}, true
	}
	return nil, false
}
