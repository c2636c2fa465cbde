package offline

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"aob.dev/writ/intents/catalog"
)

// stepResult is the result of a step; of a Partial one, which is too large to
// show, Result is the first rows, and Rows how many there are in all, where that is
// known.
type stepResult struct {
	Step    catalog.PlanStep `json:"step"`
	Result  json.RawMessage  `json:"result"`
	Partial bool             `json:"partial"`
	Rows    int              `json:"rows"`
}

// composeAnswer answers as the composer. Of a plan that failed there is the reason
// instead of results.
func composeAnswer(c *conversation) action {
	var failure string
	var results []stepResult
	if c.blocks["[Failure]"] != "" {
		c.block("[Failure]", &failure)
	} else {
		c.block("[Results]", &results)
	}
	if len(results) == 0 {
		return action{text: apology(c.task, failure)}
	}
	return action{text: compose(results[len(results)-1])}
}

// compose words the answer from the result of the last step: one sentence, and
// a table where there is more than one value.
func compose(last stepResult) string {
	var v any
	_ = json.Unmarshal(last.Result, &v) // what is no JSON is shown as nothing
	members, isObject := v.(map[string]any)
	if names := slices.Sorted(maps.Keys(members)); len(names) == 1 {
		if list, ok := members[names[0]].([]any); ok {
			v = list
		} else {
			return fmt.Sprintf("The %s is %s.", spaced(names[0]), plain(members[names[0]]))
		}
	}
	switch list, isList := v.([]any); {
	case isList:
		return listAnswer(list, last)
	case last.Partial:
		return "The result is too large to show here. It begins:\n\n" + plain(v)
	case isObject:
		text := "Here is what I found:\n"
		for _, name := range slices.Sorted(maps.Keys(members)) {
			text += "\n- " + spaced(name) + ": " + plain(members[name])
		}
		return text
	}
	return "The answer is: " + plain(v)
}

// listAnswer shows rows, fifty at most; of a partial result the first ones.
func listAnswer(rows []any, of stepResult) string {
	if len(rows) == 0 {
		return "I found nothing that matches."
	}
	n := max(len(rows), of.Rows)
	shown := rows[:min(len(rows), 50)]
	text := markdown(shown, of.Step.ReturnSpec.Shape)
	switch {
	case of.Partial && of.Rows == 0:
		return fmt.Sprintf("There are too many to show here. These are the first %d:\n\n%s", len(shown), text)
	case n > len(shown):
		return fmt.Sprintf("I found %d:\n\n%s\n… and %d more.", n, text, n-len(shown))
	}
	return fmt.Sprintf("I found %d:\n\n%s", n, text)
}

var shapeMember = regexp.MustCompile(`[{,]\s*([A-Za-z0-9_-]+)`)

// markdown sets rows as a Markdown table that reads as one as it stands, numbers
// to the right, in the order of the shape; rows that are no objects as a list.
func markdown(rows []any, shape string) string {
	have := map[string]bool{}
	for _, r := range rows {
		m, ok := r.(map[string]any)
		if !ok {
			lines := make([]string, len(rows))
			for i, r := range rows {
				lines[i] = "- " + plain(r)
			}
			return strings.Join(lines, "\n")
		}
		for name := range m {
			have[name] = true
		}
	}
	var columns []string
	for _, m := range shapeMember.FindAllStringSubmatch(shape, -1) {
		columns = append(columns, m[1])
	}
	lines := make([]string, len(rows)+2)
	for _, name := range slices.Concat(columns, slices.Sorted(maps.Keys(have))) {
		if !have[name] {
			continue
		}
		have[name] = false // it has its column
		cells, wide, right := make([]string, len(rows)), max(3, utf8.RuneCountInString(name)), true
		for i, r := range rows {
			v := r.(map[string]any)[name] //nolint:forcetypeassert // checked above
			_, isNumber := v.(float64)
			right = right && (isNumber || v == nil)
			cells[i] = strings.ReplaceAll(plain(v), "|", `\|`)
			wide = max(wide, utf8.RuneCountInString(cells[i]))
		}
		rule := strings.Repeat("-", wide)
		if right {
			rule = rule[1:] + ":"
		} else {
			wide = -wide // to the left
		}
		for i, cell := range slices.Concat([]string{spaced(name), rule}, cells) {
			lines[i] += fmt.Sprintf("| %*s ", wide, cell)
		}
	}
	return strings.Join(lines, "|\n") + "|"
}

func spaced(name string) string { return strings.ReplaceAll(name, "_", " ") }

// plain is a JSON value as a reader sees it.
func plain(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return strings.Join(strings.Fields(v), " ")
	case bool:
		return map[bool]string{true: "yes", false: "no"}[v]
	case []any:
		parts := make([]string, len(v))
		for i, e := range v {
			parts[i] = plain(e)
		}
		return strings.Join(parts, ", ")
	}
	b, _ := json.Marshal(v) // it was JSON
	return string(b)
}

var (
	// A code is a word of capitals joined by underscores; an identifier is a digest or a prefixed name.
	codes = regexp.MustCompile(`\b[A-Z][A-Z0-9]*(_[A-Z0-9]+)+\b:?|(\b(of|in|for|by) )?\b(sha256:[0-9a-f]+|(plan|task|turn|sess|file)_[A-Za-z0-9]+)\b`)
	trace = regexp.MustCompile(`(?s)Traceback \(most recent call last\).*|goroutine \d+ \[.*|\bat 0x[0-9a-f]+.*`)
	// A contract word is how the system names a failure to itself; what is quoted may be typed.
	contract = regexp.MustCompile(`"[^"]*"|\b[a-z]+(_[a-z0-9]+)+\b`)
	gaps     = regexp.MustCompile(`\(\s*\)|[ \t:;,]+([.!?])|[ \t]{2,}|^\s*[:;,.]+\s*`)
)

// apology says what could not be done, and why. Codes, traces and identifiers are
// for the record, not for a reader.
func apology(task, failure string) string {
	s := "I could not answer this"
	if t := strings.TrimSpace(task); t != "" {
		s = fmt.Sprintf("I could not do this: %q", t)
	}
	why := codes.ReplaceAllString(trace.ReplaceAllString(failure, ""), "")
	why = contract.ReplaceAllStringFunc(why, func(s string) string {
		if s[0] == '"' {
			return s
		}
		return spaced(s)
	})
	why = strings.TrimSpace(gaps.ReplaceAllString(why, " $1"))
	why = strings.ReplaceAll(why, " .", ".")
	if !strings.ContainsFunc(why, func(r rune) bool { return 'a' <= r && r <= 'z' }) {
		return s + ". The steps that it takes did not succeed."
	}
	return s + ". " + sentence(why)
}

// ability says what can be asked.
const ability = "This is the offline model: it lists, counts, adds up, averages, filters and sorts what skills return, asked in their own words."

// chats are what people say that asks for nothing, with the answers.
var chats = map[*regexp.Regexp]string{
	regexp.MustCompile(`^(hello|hi|hey|good (morning|afternoon|evening|day))( there| all)?$`): "Hello! " + ability,
	regexp.MustCompile(`^(many )?(thanks|thank you)( a lot| so much| very much)?$`):           "You are welcome.",
	regexp.MustCompile(`^((hello|hi|hey) )?((who|what) are you|what can you do|help( me)?)$`): ability,
}

// smallTalk answers what asks for nothing; empty: this asks for something, or it
// names a skill.
func smallTalk(text string, skills []skill) string {
	asks := slices.ContainsFunc(skills, func(s skill) bool { return named(s.Name, text) })
	for said, answer := range chats {
		if !asks && said.MatchString(strings.Join(parts(text), " ")) {
			return answer
		}
	}
	return ""
}
