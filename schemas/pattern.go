package schemas

import (
	"regexp/syntax"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// matcher matches what a pattern of ours does: without the machinery where it is
// a word and then characters of one class, or one of several such.
func matcher(re jsonschema.Regexp) func(string) bool {
	inside, ok := strings.CutPrefix(re.String(), "^")
	if inside, ok = cutEnd(inside, ok); !ok {
		return re.MatchString
	}
	if all, wrapped := strings.CutPrefix(inside, "("); wrapped && strings.Count(inside, "(") == 1 && strings.HasSuffix(all, ")") {
		inside = strings.TrimSuffix(all, ")")
	} else if strings.Contains(inside, "|") {
		return re.MatchString // the anchors are of the first and the last alone
	}
	var runs []run
	for part := range strings.SplitSeq(inside, "|") {
		r, ok := parseRun(part)
		if !ok {
			return re.MatchString
		}
		runs = append(runs, r)
	}
	return func(s string) bool {
		for i := range runs {
			if runs[i].match(s) {
				return true
			}
		}
		return false
	}
}

func cutEnd(s string, ok bool) (string, bool) {
	rest, ends := strings.CutSuffix(s, "$")
	return rest, ok && ends && !strings.HasSuffix(rest, `\`)
}

// run is a word and then so many ASCII characters of a class.
type run struct {
	word     string
	in       [128]bool
	min, max int
}

func (r *run) match(s string) bool {
	s, ok := strings.CutPrefix(s, r.word)
	if !ok || len(s) < r.min || len(s) > r.max {
		return false
	}
	for i := range len(s) {
		if s[i] >= 128 || !r.in[s[i]] {
			return false
		}
	}
	return true
}

// parseRun reads word[class]{n,m}.
func parseRun(part string) (r run, ok bool) {
	re, err := syntax.Parse(part, syntax.Perl)
	if err != nil {
		return r, false
	}
	if re.Op == syntax.OpConcat && len(re.Sub) == 2 && re.Sub[0].Op == syntax.OpLiteral && re.Sub[0].Flags&syntax.FoldCase == 0 {
		r.word, re = string(re.Sub[0].Rune), re.Sub[1]
	}
	if re.Op != syntax.OpRepeat || re.Max < 0 || re.Sub[0].Op != syntax.OpCharClass {
		return r, false
	}
	r.min, r.max = re.Min, re.Max
	for class := re.Sub[0].Rune; len(class) > 1; class = class[2:] {
		if class[1] >= 128 {
			return r, false
		}
		for c := class[0]; c <= class[1]; c++ {
			r.in[c] = true
		}
	}
	return r, true
}
