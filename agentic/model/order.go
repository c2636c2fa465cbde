package model

import (
	"math"
	"strings"
)

// ordering reads explicit orders ("sorted by revenue, highest first"). A
// superlative before it has settled the column already.
func (r *reading) ordering() {
	for i := range r.ws {
		switch w := r.lower(i); {
		case sorts[w] && r.lower(i+1) == "by" && !r.used[i]:
			r.sortBy(i)
		case strings.HasPrefix(w, "alphabetical") && r.q.by == "":
			if f := r.src.label(); f != nil {
				r.q.by, r.q.asc = f.column, true
			}
		case w == "ascending":
			r.q.asc = true
		case w == "descending":
			r.q.asc = false
		case r.lower(i+1) == "first":
			r.firstThe(i)
		}
	}
}

func (r *reading) sortBy(i int) {
	r.use(i, 2)
	f, at, n := r.after(i+1, 3, (*field).scalar)
	switch {
	case f != nil && r.q.by == "":
		r.order(f, at, n)
		r.q.asc = !strings.HasPrefix(r.lower(i), "rank")
	case f != nil:
		r.use(at, n)
	case r.q.fold != foldNone && r.q.by == "" && r.lower(i+2) == "count":
		r.q.by, r.q.asc = r.q.foldColumn(), true
	case r.q.by == "" && i+2 < len(r.ws):
		r.missing = append(r.missing, r.ws[i+2].text)
	}
}

// firstThe reads "highest first" and "newest first".
func (r *reading) firstThe(i int) {
	s, ok := asSuperlative(r.ws[i])
	if !ok {
		return
	}
	r.use(i, 2)
	r.q.asc = s.asc
	switch f := r.src.timed(); {
	case r.q.by != "":
	case r.byClauseOrder():
	case len(r.q.per) > 0:
		r.q.by = r.q.foldColumn()
	case s.time && f != nil:
		r.q.by = f.column
	default:
		if f := r.src.sized(s.base); f != nil {
			r.q.by = f.column
		}
	}
}

// byClauseOrder reads "by revenue, highest first".
func (r *reading) byClauseOrder() bool {
	f, at, n := r.byClause(-1)
	if f == nil || r.used[at] {
		return false
	}
	r.order(f, at, n)
	return true
}

// defaultLimit is how many records answer a plural question that gives no
// number ("the largest orders"): enough to see, few enough to read.
const defaultLimit = 10

// limits reads how many records are wanted. A number belongs to a limit when
// what follows it is a noun of this source or a superlative.
func (r *reading) limits() {
	for i, w := range r.ws {
		if !w.isNum || r.used[i] || r.q.limit > 0 || w.number < 1 || w.number > 10000 || w.number != math.Trunc(w.number) {
			continue
		}
		before := r.lower(i - 1)
		lead := before == "top" || before == "first" || before == "bottom" || before == "last"
		if !lead && !r.countable(i) {
			continue
		}
		r.q.limit = int(w.number)
		r.use(i, 1)
		if lead {
			r.use(i-1, 1)
		}
		if f := r.src.timed(); before == "last" && r.q.by == "" {
			if r.unresolved = f == nil; f != nil {
				r.q.by, r.q.asc = f.column, false
			}
		}
	}
	if r.q.limit == 0 && r.superAt >= 0 && r.q.by != "" {
		r.q.limit = r.impliedLimit()
	}
}

// countable reports whether a noun of this source follows the number.
func (r *reading) countable(i int) bool {
	for k := i + 1; k <= i+3 && k < len(r.ws); k++ {
		if f, _ := r.mention(k, anyField); r.names(k) || f != nil || r.grouped(k) || k == r.superAt {
			return true
		}
		if r.ws[k].isNum || r.ws[k].op || stop[r.ws[k].stem] {
			return false
		}
	}
	return false
}

func (r *reading) grouped(i int) bool {
	f, _ := r.grouping(i)
	return f != nil && r.q.fold != foldNone
}

// impliedLimit is one for "the cheapest outlet" and "which outlet".
func (r *reading) impliedLimit() int {
	for i, w := range r.ws {
		if r.names(i) {
			if plural(w) {
				return defaultLimit
			}
			return 1
		}
	}
	for i := r.superAt + 1; i < len(r.ws); i++ {
		if r.ws[i].content() && plural(r.ws[i]) {
			return defaultLimit
		}
	}
	return 1
}
