package catalog

import (
	"encoding/json"
	"regexp"
	"strings"
	"unicode/utf8"
)

// placeholder of a summary: the path of a member of the skill's input.
var placeholder = regexp.MustCompile(`\{([A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*)\}`)

// maxValue bounds a value in a sentence, in characters. The whole value stands beside it.
const maxValue = 80

// Placeholders are the paths that a summary of a skill names.
func Placeholders(summary string) (out []string) {
	for _, m := range placeholder.FindAllStringSubmatch(summary, -1) {
		out = append(out, m[1])
	}
	return out
}

// Sentence says in a line what an intent does, for people who approve it: by the summary that an
// operator gave its skill, with the members of the input in the place of {their.path}, else by the
// name of the skill or the title of the type. It may omit arguments, so show those beside it.
func Sentence(row Row, args json.RawMessage, summary string) string {
	var a struct {
		Skill, Title string
		Input        json.RawMessage
	}
	if json.Unmarshal(args, &a) != nil {
		return row.Title
	}
	switch {
	case summary != "":
		return placeholder.ReplaceAllStringFunc(summary, func(p string) string { return member(a.Input, p[1:len(p)-1]) })
	case row.Type == "skill.call" && a.Skill != "":
		return "Call " + a.Skill
	case row.Type == "approval.ask" && a.Title != "":
		return a.Title
	default:
		return row.Title
	}
}

// member is the value at a path as text. What is not there, or is not shown, says so.
func member(doc json.RawMessage, path string) string {
	for _, name := range strings.Split(path, ".") {
		var m map[string]json.RawMessage
		if json.Unmarshal(doc, &m) != nil || m[name] == nil {
			return "(no " + path + ")"
		}
		doc = m[name]
	}
	text := string(doc)
	if doc[0] == '"' {
		_ = json.Unmarshal(doc, &text) // it was read above
	}
	if utf8.RuneCountInString(text) > maxValue {
		text = string([]rune(text)[:maxValue]) + "…"
	}
	return text
}
