package model

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxRows is how many rows an answer shows.
const maxRows = 50

// table sets objects as a Markdown table, numbers to the right, the columns of
// lead first.
func table(rows []json.RawMessage, lead []string) string {
	columns := tableColumns(rows, lead)
	wide := make([]int, len(columns))
	right := make([]bool, len(columns))
	lines := [][]string{make([]string, len(columns))}
	for i, c := range columns {
		lines[0][i] = strings.ReplaceAll(c, "_", " ")
		right[i] = true
	}
	for _, r := range rows[:min(len(rows), maxRows)] {
		var m map[string]json.RawMessage
		_ = json.Unmarshal(r, &m) // a row that is no object has empty cells
		line := make([]string, len(columns))
		for i, c := range columns {
			line[i] = strings.ReplaceAll(plainValue(m[c]), "|", `\|`)
			right[i] = right[i] && (isNull(m[c]) || observe(string(m[c])).is("number", "integer"))
		}
		lines = append(lines, line)
	}
	for _, l := range lines {
		for i, cell := range l {
			wide[i] = max(wide[i], utf8.RuneCountInString(cell))
		}
	}
	return typeset(lines, wide, right)
}

// typeset aligns the cells, so that the Markdown reads as a table as it stands.
func typeset(lines [][]string, wide []int, right []bool) string {
	rule := make([]string, len(wide))
	for i := range wide {
		wide[i] = max(wide[i], 3)
		if rule[i] = strings.Repeat("-", wide[i]); right[i] {
			rule[i] = rule[i][1:] + ":"
		}
	}
	var b strings.Builder
	for _, l := range slices.Insert(slices.Clone(lines), 1, rule) {
		cells := make([]string, len(l))
		for i, cell := range l {
			if cells[i] = pad(cell, wide[i]); right[i] {
				cells[i] = strings.Repeat(" ", wide[i]-utf8.RuneCountInString(cell)) + cell
			}
		}
		b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func pad(s string, wide int) string {
	return s + strings.Repeat(" ", max(0, wide-utf8.RuneCountInString(s)))
}

// tableColumns are the members of the rows: those of lead in its order (a
// stored result may have lost the order of its members), then any others.
func tableColumns(rows []json.RawMessage, lead []string) []string {
	var have, out []string
	for _, r := range rows[:min(len(rows), maxRows)] {
		for _, m := range keysOf(r) {
			if !slices.Contains(have, m.key) {
				have = append(have, m.key)
			}
		}
	}
	for _, c := range slices.Concat(lead, have) {
		if slices.Contains(have, c) && !slices.Contains(out, c) {
			out = append(out, c)
		}
	}
	return out
}

// plainValue is a JSON value as a reader sees it.
func plainValue(raw json.RawMessage) string {
	var s string
	var list []json.RawMessage
	switch {
	case isNull(raw):
		return ""
	case json.Unmarshal(raw, &s) == nil:
		return oneLine(s)
	case json.Unmarshal(raw, &list) == nil:
		parts := make([]string, len(list))
		for i, v := range list {
			parts[i] = plainValue(v)
		}
		return strings.Join(parts, ", ")
	}
	switch string(raw) {
	case "true":
		return "yes"
	case "false":
		return "no"
	}
	return oneLine(strings.TrimSuffix(string(raw), ".0"))
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

func rest(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf("\n… and %d more.", n)
}
