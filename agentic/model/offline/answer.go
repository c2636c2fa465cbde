package offline

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"aob.dev/writ/intents/catalog"
)

// stepResult is the result of a step; of a Partial one, which is too large to show, Result is the
// first rows, and Rows their total number, if known.
type stepResult struct {
	Step    catalog.PlanStep `json:"step"`
	Result  json.RawMessage  `json:"result"`
	Partial bool             `json:"more"`
	Rows    int              `json:"rows"`
}

// composeAnswer answers as the composer. A failed plan has a reason instead of results.
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

// compose writes the answer from the result of the last step: one sentence, and a table if there
// is more than one value.
func compose(last stepResult) string {
	var v any
	_ = json.Unmarshal(last.Result, &v) // invalid JSON is shown as nothing
	members, isObject := v.(map[string]any)
	names := slices.Sorted(maps.Keys(members))
	if len(names) == 1 {
		list, ok := members[names[0]].([]any)
		if !ok {
			return fmt.Sprintf("The %s is %s.", spaced(names[0]), plain(members[names[0]]))
		}
		v = list
	}
	switch list, isList := v.([]any); {
	case isList:
		return listAnswer(list, last)
	case last.Partial:
		return "The result is too large to show here. It begins:\n\n" + plain(v)
	case isObject:
		text := "Here is what I found:\n"
		for _, name := range names {
			text += "\n- " + spaced(name) + ": " + plain(members[name])
		}
		return text
	}
	return "The answer is: " + plain(v)
}

// listAnswer shows at most fifty rows; of a partial result the first ones.
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

// markdown formats rows as a Markdown table that is readable as plain text, numbers to the right,
// in the order of the shape; rows that are not objects become a list.
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
		have[name] = false // already has its column
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

// plain formats a JSON value for a reader.
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

// apology explains what could not be done, and why. Codes and traces in it are removed where the user
// reads it.
func apology(task, failure string) string {
	return fmt.Sprintf("I could not do this: %q. %s", strings.TrimSpace(task), sentence(cmp.Or(failure, "The steps that it takes did not succeed.")))
}

// sentence adds a missing full stop.
func sentence(s string) string {
	s = strings.TrimSpace(s)
	if s == "" || strings.ContainsAny(s[len(s)-1:], ".!?") {
		return s
	}
	return s + "."
}
