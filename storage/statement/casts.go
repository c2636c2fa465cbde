package statement

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// tokens of a statement: comments and spaces, literals and quoted names, numbers and words, the cast, else one character.
var tokens = regexp.MustCompile(`(?s)\s+|--[^\n]*|/\*.*?(?:\*/|$)|[xX]?'(?:[^']|'')*'?|"(?:[^"]|"")*"?|` + "`[^`]*`?" + `|\[[^\]]*\]?|[\pL\pN_$]+(?:\.[\pL\pN_$]+)*|::|->>?|.`)

// casts are the types of PostgreSQL, with what SQLite writes before and behind a value. An integer is rounded, as there.
var casts = func() map[string][2]string {
	out := map[string][2]string{}
	for names, around := range map[string][2]string{
		"int integer bigint smallint int4 int8": {"CAST(round(", ") AS INTEGER)"},
		"float real numeric float4 float8":      {"CAST(", " AS REAL)"},
		"text varchar":                          {"CAST(", " AS TEXT)"},
		"date":                                  {"date(", ")"},
	} {
		for _, name := range strings.Fields(names) {
			out[name] = around
		}
	}
	return out
}()

// withoutCasts has PostgreSQL's x::int in the words of SQLite, where x is a name, a literal, a call or in parentheses.
// It changes nothing in literals, quoted names and comments. What it takes wrongly, SQLite refuses.
func withoutCasts(statement string) (string, error) {
	if !strings.Contains(statement, "::") {
		return statement, nil
	}
	list := tokens.FindAllString(statement, -1)
	before := make([][]string, len(list)+1) // of each token, what is to stand before it, the last first
	var open []int                          // parentheses
	first, last := -1, -1                   // the tokens of the value that has just ended
	arrow := false                          // stands before it
	for i := 0; i < len(list); i++ {
		switch token := list[i]; {
		case blank(token):
		case token == "(":
			start := i
			if i > 0 && isWord(list[i-1]) { // a call
				start--
			}
			open, first = append(open, start), -1
		case token == ")":
			if first, last = -1, i; len(open) > 0 {
				first, open = open[len(open)-1], open[:len(open)-1]
			}
		case token == "::":
			at := i + 1
			for at < len(list) && blank(list[at]) {
				at++
			}
			if at == len(list) || first < 0 {
				return "", errors.New("a cast needs a value before :: and a type behind it")
			}
			if list[first][0] == '\'' && arrow {
				return "", errors.New("a cast binds closer than ->>: put what is cast in parentheses")
			}
			around, ok := casts[strings.ToLower(list[at])]
			if !ok {
				return "", fmt.Errorf("no cast to %s: use int, float, text or date", list[at])
			}
			before[first] = append(before[first], around[0])
			clear(list[last+1 : at])
			list[at], last, i = around[1], at, at
		case isWord(token) || strings.ContainsAny(token[:1], "'\"`[") || strings.HasSuffix(token, "'"):
			first, last = i, i
		default:
			first, arrow = -1, strings.HasPrefix(token, "->")
		}
	}
	var out strings.Builder
	for i, token := range list {
		slices.Reverse(before[i])
		for _, text := range before[i] {
			out.WriteString(text)
		}
		out.WriteString(token)
	}
	return out.String(), nil
}

var word = regexp.MustCompile(`^[\pL\pN_$][\pL\pN_$.]*$`)

func isWord(token string) bool { return word.MatchString(token) }

func blank(token string) bool {
	return strings.TrimSpace(token) == "" || strings.HasPrefix(token, "--") || strings.HasPrefix(token, "/*")
}
