package model

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// compose words the answer from the last step's result: one sentence, and a
// table where there is more than one value.
func compose(in ComposeInput) ComposeOutput {
	if in.Failure != "" || len(in.Results) == 0 {
		return ComposeOutput{apology(in)}
	}
	last := in.Results[len(in.Results)-1]
	q := asked(in.Results)
	var rows []json.RawMessage
	if json.Unmarshal(last.Result, &rows) == nil && rows != nil {
		return ComposeOutput{listAnswer(rows, last, q)}
	}
	if last.Partial {
		return ComposeOutput{"The result is too large to show here. It begins:\n\n" + plainValue(last.Result)}
	}
	members := keysOf(last.Result)
	switch {
	case len(members) == 1 && listed(members[0].value):
		_ = json.Unmarshal(members[0].value, &rows) // listed just checked it
		return ComposeOutput{listAnswer(rows, last, q)}
	case len(members) == 1:
		return ComposeOutput{valueAnswer(in.Task, members[0].key, plainValue(members[0].value))}
	case len(members) > 1:
		return ComposeOutput{"Here is what I found:\n\n" + facts(members)}
	}
	return ComposeOutput{"The answer is: " + plainValue(last.Result)}
}

// asked merges what the steps asked for: an arranging step knows the order,
// an earlier one how many were taken.
func asked(results []StepResult) query {
	var out query
	for _, r := range results {
		q, ok := readQuery(r.Step.Task)
		if !ok {
			continue
		}
		limit := q.limit
		if limit == 0 && q.arrange {
			limit = out.limit
		}
		out = q
		out.limit = limit
	}
	return out
}

func listed(raw json.RawMessage) bool {
	var rows []json.RawMessage
	return json.Unmarshal(raw, &rows) == nil && rows != nil
}

// listAnswer shows rows, of a partial result the first ones.
func listAnswer(rows []json.RawMessage, of StepResult, q query) string {
	if len(rows) == 0 {
		return "I found nothing that matches."
	}
	n := max(len(rows), of.Rows)
	shown := rows[:min(len(rows), maxRows)]
	var text string
	if len(keysOf(rows[0])) == 0 {
		q = query{}
		lines := make([]string, 0, len(shown))
		for _, r := range shown {
			lines = append(lines, "- "+plainValue(r))
		}
		text = strings.Join(lines, "\n")
	} else {
		text = table(shown, q.output())
	}
	if of.Partial && of.Rows == 0 {
		return fmt.Sprintf("There are too many to show here. These are the first %d:", len(shown)) + "\n\n" + text
	}
	return headline(n, q) + "\n\n" + text + rest(n-len(shown))
}

func headline(n int, q query) string {
	ordered := ""
	if q.fold != foldNone && len(q.per) > 0 && q.limit == 0 {
		return strings.ReplaceAll(fmt.Sprintf("This is the %s for each %s:", q.foldColumn(), strings.Join(q.per, " and ")), "_", " ")
	}
	if q.by != "" {
		end := "highest"
		if q.asc {
			end = "lowest"
		}
		by := strings.ReplaceAll(q.by, "_", " ")
		if q.limit > 0 && n == 1 {
			return fmt.Sprintf("This is the one with the %s %s:", end, by)
		}
		if q.limit > 0 {
			return fmt.Sprintf("These are the %d with the %s %s:", n, end, by)
		}
		ordered = fmt.Sprintf(", %s %s first", end, by)
	}
	if n == 1 {
		return "I found one:"
	}
	return fmt.Sprintf("I found %d%s:", n, ordered)
}

var howMany = regexp.MustCompile(`(?i)^\s*how many\s+(.*?)\s*\?*\s*$`)

// valueAnswer words a single value. A count answers "how many" in its own words.
func valueAnswer(task, name, value string) string {
	if m := howMany.FindStringSubmatch(task); m != nil && name == "count" && value != "1" && !strings.ContainsAny(m[1], "?.!\n") {
		if w := words(m[1]); len(w) > 1 && slices.Contains([]string{"are", "were", "have", "had"}, w[1].lower) && w[len(w)-1].lower != "there" {
			return value + " " + m[1] + "."
		}
	}
	return fmt.Sprintf("The %s is %s.", strings.ReplaceAll(name, "_", " "), value)
}

func facts(members []member) string {
	lines := make([]string, len(members))
	for i, m := range members {
		lines[i] = "- " + strings.ReplaceAll(m.key, "_", " ") + ": " + plainValue(m.value)
	}
	return strings.Join(lines, "\n")
}

var (
	// A code is a word of capitals joined by underscores; an identifier is a digest or a prefixed name.
	codes = regexp.MustCompile(`\b[A-Z][A-Z0-9]*(_[A-Z0-9]+)+\b:?|(\b(of|in|for|by) )?\b(sha256:[0-9a-f]+|(plan|task|turn|sess|file)_[A-Za-z0-9]+)\b`)
	trace = regexp.MustCompile(`(?s)Traceback \(most recent call last\).*|goroutine \d+ \[.*|\bat 0x[0-9a-f]+.*`)
	// A contract word is how the system names a failure to itself.
	inner = regexp.MustCompile(`\b[a-z]+(_[a-z0-9]+)+\b`)
	gaps  = regexp.MustCompile(`\(\s*\)|[\s:;,]+([.!?])|\s{2,}|^\s*[:;,.]+\s*`)
)

// apology says what could not be done. Codes, traces and identifiers are for
// the record, not for a reader.
func apology(in ComposeInput) string {
	s := "I could not answer this"
	if t := strings.TrimSpace(in.Task); t != "" {
		s = fmt.Sprintf("I could not do this: %q", t)
	}
	why := codes.ReplaceAllString(trace.ReplaceAllString(in.Failure, ""), "")
	why = inner.ReplaceAllStringFunc(why, func(w string) string { return strings.ReplaceAll(w, "_", " ") })
	why = strings.TrimSpace(gaps.ReplaceAllString(strings.ReplaceAll(why, "\n", " "), " $1"))
	why = strings.ReplaceAll(why, " .", ".")
	if !strings.ContainsFunc(why, alnum) {
		return s + ". The steps that it takes did not succeed."
	}
	return s + ". " + sentence(why)
}
