package offline

// query is what a request asks of one table. As JSON it is the parameter of the
// script that answers it.
type query struct {
	Where []condition `json:"where"`
	Fold  string      `json:"fold"`         // count, total or average; empty: the records themselves
	Of    *column     `json:"of,omitempty"` // what is folded; none for a count
	Per   []column    `json:"per"`
	By    *column     `json:"by,omitempty"` // what orders the records
	Asc   bool        `json:"asc"`
	Limit int         `json:"limit"`

	columns []column // to return; none: all
}

// condition keeps the records whose column compares so with the value.
type condition struct {
	Columns []column `json:"columns"`
	Op      string   `json:"op"`
	Value   any      `json:"value"`
}

// The comparisons.
const (
	opIs      = "is"
	opNot     = "is not"
	opOver    = "over"
	opUnder   = "under"
	opLeast   = "at least"
	opMost    = "at most"
	opKnown   = "known"
	opMention = "mentions" // equal, or where no record is equal, containing the words
)

// The folds.
const (
	foldCount   = "count"
	foldTotal   = "total"
	foldAverage = "average"
)

// plain reports whether a query asks for all records as they are.
func (q *query) plain() bool {
	return len(q.Where) == 0 && q.Fold == "" && q.By == nil && q.Limit == 0
}

// folded is how results name the folded value.
func (q *query) folded() string {
	if q.Of == nil {
		return q.Fold
	}
	return q.Fold + "_" + q.Of.Name
}

// shape is the return_spec of the answer.
func (q *query) shape(t *table) string {
	if q.Fold != "" {
		typ := "number"
		if q.Fold == foldCount || q.Fold == foldTotal && q.Of.typ == "integer" {
			typ = "integer"
		}
		members := ""
		for _, c := range q.Per {
			members += c.Name + ": " + c.shape() + ", "
		}
		members = "{" + members + q.folded() + ": " + typ + "}"
		if len(q.Per) == 0 {
			return members
		}
		return "array<" + members + ">"
	}
	columns := q.columns
	if len(columns) == 0 {
		columns = t.columns
	}
	if len(columns) == 0 {
		return "any"
	}
	members := ""
	for i, c := range columns {
		if i > 0 {
			members += ", "
		}
		members += c.Name + ": " + c.shape()
	}
	if t.single {
		return "{" + members + "}"
	}
	return "array<{" + members + "}>"
}
