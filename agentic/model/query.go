package model

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// query is what a task asks of one set of records.
type query struct {
	skill   string // the skill that is called, empty for work on an earlier result alone
	from    int    // the step whose result is worked on or handed to the skill
	members []string
	arrange bool // ordering is the skill's work, not the script's
	where   []condition
	fold    fold
	of      string // column that is folded; none for a count
	per     []string
	by      string // column that orders the result
	asc     bool
	limit   int
	columns []string
}

// condition keeps the records whose column compares so with the value. Column
// anyText stands for every text column.
type condition struct {
	column string
	op     string
	value  string // JSON
}

const anyText = "any text"

// The comparisons, as step tasks write them.
const (
	opIs      = "is"
	opNot     = "is not"
	opMention = "mentions" // equal, or where no record is equal, containing the words
	opOver    = "is over"
	opUnder   = "is under"
	opLeast   = "is at least"
	opMost    = "is at most"
	opKnown   = "is known"
)

var ops = []string{opNot, opOver, opUnder, opLeast, opMost, opKnown, opMention, opIs}

// fold turns many records into one value.
type fold string

const (
	foldNone    fold = ""
	foldCount   fold = "count"
	foldSum     fold = "sum"
	foldAverage fold = "average"
	foldMin     fold = "smallest"
	foldMax     fold = "largest"
)

// foldColumn is how results name the folded value.
func (q *query) foldColumn() string {
	switch q.fold { //nolint:exhaustive // the rest share a case below
	case foldNone:
		return ""
	case foldCount:
		return "count"
	case foldSum:
		return "total_" + strings.TrimPrefix(q.of, "total_")
	}
	return string(q.fold) + "_" + q.of
}

// output are the columns of the result, in order.
func (q *query) output() []string {
	if q.fold == foldNone {
		return q.columns
	}
	return append(append([]string{}, q.per...), q.foldColumn())
}

// String is the query as the task of a step: clauses in a fixed form that
// [readQuery] reads back, for example
//
//	Call orders; keep status is "open"; highest amount first; take 10; return order_id, amount.
func (q *query) String() string {
	head := "Use the result of step " + strconv.Itoa(q.from)
	if q.skill != "" {
		head = "Call " + q.skill
		if q.from > 0 {
			head += fmt.Sprintf(" with %s of step %d", orRows(q.members), q.from)
		}
	}
	parts := []string{head}
	for _, c := range q.where {
		parts = append(parts, strings.TrimSpace("keep "+c.column+" "+c.op+" "+c.value))
	}
	if q.fold != foldNone {
		parts = append(parts, strings.TrimSpace(string(q.fold)+" "+q.of))
	}
	if len(q.per) > 0 {
		parts = append(parts, "per "+strings.Join(q.per, ", "))
	}
	if q.by != "" {
		parts = append(parts, q.ordering())
	}
	if q.limit > 0 {
		parts = append(parts, "take "+strconv.Itoa(q.limit))
	}
	return strings.Join(append(parts, "return "+strings.Join(q.output(), ", ")), "; ") + "."
}

func (q *query) ordering() string {
	s := "highest " + q.by + " first"
	if q.asc {
		s = "lowest " + q.by + " first"
	}
	if q.arrange {
		return "arrange " + s
	}
	return s
}

func orRows(members []string) string {
	if len(members) == 0 {
		return "the rows"
	}
	return strings.Join(members, ", ")
}

// readQuery reads a step task that was written by [query.String].
func readQuery(task string) (query, bool) {
	var q query
	text, ok := strings.CutSuffix(strings.TrimSpace(task), ".")
	clauses := clausesOf(text)
	if !ok || len(clauses) < 2 || !q.readHead(clauses[0]) {
		return query{}, false
	}
	var output []string
	for _, c := range clauses[1:] {
		if rest, ok := strings.CutPrefix(c, "return "); ok {
			output = columnsOf(rest)
		} else if !q.readClause(c) {
			return query{}, false
		}
	}
	if q.fold == foldNone {
		q.columns = output
	}
	return q, len(output) > 0
}

// clausesOf splits at semicolons that are outside quotes.
func clausesOf(text string) []string {
	var out []string
	start, quoted, escaped := 0, false, false
	for i, c := range text {
		switch {
		case escaped:
			escaped = false
		case quoted && c == '\\':
			escaped = true
		case c == '"':
			quoted = !quoted
		case c == ';' && !quoted:
			out = append(out, strings.TrimSpace(text[start:i]))
			start = i + 1
		}
	}
	return append(out, strings.TrimSpace(text[start:]))
}

func columnsOf(list string) []string {
	var out []string
	for c := range strings.SplitSeq(list, ",") {
		if c = strings.TrimSpace(c); c != "" {
			out = append(out, c)
		}
	}
	return out
}

func (q *query) readHead(head string) bool {
	if n, ok := strings.CutPrefix(head, "Use the result of step "); ok {
		step, err := strconv.Atoi(n)
		q.from = step
		return err == nil
	}
	call, ok := strings.CutPrefix(head, "Call ")
	name, given, with := strings.Cut(call, " with ")
	if q.skill = name; !with {
		return ok && name != ""
	}
	members, n, found := strings.Cut(given, " of step ")
	step, err := strconv.Atoi(n)
	if q.from = step; members != "the rows" {
		q.members = columnsOf(members)
	}
	return ok && found && err == nil
}

func (q *query) readClause(c string) bool {
	verb, rest, _ := strings.Cut(c, " ")
	switch verb {
	case "keep":
		return q.readCondition(rest)
	case "arrange":
		q.arrange = true
		return q.readOrder(rest)
	case "highest", "lowest":
		return q.readOrder(c)
	case "take":
		n, err := strconv.Atoi(rest)
		q.limit = n
		return err == nil && n > 0
	case "per":
		q.per = columnsOf(rest)
		return true
	}
	switch f := fold(verb); f { //nolint:exhaustive // foldNone is no verb
	case foldCount, foldSum, foldAverage, foldMin, foldMax:
		q.fold, q.of = f, rest
		return (f == foldCount) == (rest == "")
	}
	return false
}

func (q *query) readOrder(c string) bool {
	end, rest, _ := strings.Cut(c, " ")
	by, ok := strings.CutSuffix(rest, " first")
	q.by, q.asc = by, end == "lowest"
	return ok
}

func (q *query) readCondition(c string) bool {
	for _, op := range ops {
		column, value, ok := strings.Cut(c, " "+op)
		value = strings.TrimSpace(value)
		if ok && (column == anyText || !strings.ContainsAny(column, ` "`)) && (op == opKnown) == (value == "") && (value == "" || json.Valid([]byte(value))) {
			q.where = append(q.where, condition{column, op, value})
			return true
		}
	}
	return false
}

func quoteJSON(s string) string {
	b, _ := json.Marshal(s) // a string always encodes
	return string(b)
}
