package model

import "strings"

// The parts of a question that arrange records: superlatives, folds and groups.
// Each method uses up the words it understands.

// superlative finds what "strongest" or "highest revenue" orders by.
func (r *reading) superlative() {
	for i, w := range r.ws {
		s, ok := asSuperlative(w)
		if !ok || r.used[i] || r.lower(i-1) == "at" || r.lower(i+1) == "first" || r.lower(i+1) == "to" {
			continue
		}
		if s.base == "much" && (r.lower(i+1) == "recent" || r.lower(i+1) == "recently") {
			s = superlative{base: "time", time: true}
			r.use(i+1, 1)
		}
		r.superAt, r.super = i, s
		r.orderBy(i, s)
		return
	}
}

func (r *reading) orderBy(i int, s superlative) {
	r.q.asc = s.asc
	if f, at, n := r.byClause(i); f != nil {
		r.order(f, at, n)
		return
	}
	switch f, at, n := r.after(i, 3, r.orderable); {
	case s.time && r.src.timed() != nil:
		r.order(r.src.timed(), i, 1)
	case !s.generic && !s.time && r.src.measured(s.base) != nil:
		r.order(r.src.measured(s.base), i, 1)
	case s.base == "much" && r.adjectiveMeasure(i+1):
	case s.generic && f != nil:
		r.order(f, at, n)
	case s.generic && (s.base == "much" || s.base == "few") && r.names(i+1):
		r.most = true
	case s.generic && (r.names(i+1) || i+1 == len(r.ws) || !r.ws[i+1].content()) && r.src.sized(s.base) != nil:
		r.order(r.src.sized(s.base), i, 1)
	default:
		r.unresolved = true // the word stays free for another source
		return
	}
	r.use(i, 1)
}

// adjectiveMeasure reads "most expensive".
func (r *reading) adjectiveMeasure(i int) bool {
	if i >= len(r.ws) || !r.vocabulary(i) {
		return false
	}
	f := r.src.measured(r.stem(i))
	if f != nil {
		r.order(f, i, 1)
	}
	return f != nil
}

// byClause reads the "by revenue" of "top 3 outlets by revenue".
func (r *reading) byClause(i int) (f *field, at, n int) {
	for k := i + 1; k < len(r.ws); k++ {
		if r.lower(k) == "by" {
			if f, at, n := r.after(k, 2, r.orderable); f != nil && at <= k+2 {
				return f, at, n
			}
		}
	}
	return nil, 0, 0
}

func (r *reading) orderable(f *field) bool { return f.measure() || f.when() }

func (r *reading) order(f *field, at, n int) {
	r.q.by = f.column
	r.fits += fitWord
	r.use(at, n)
}

// foldWords lead to folds over a column.
var foldWords = map[string]fold{
	"average": foldAverage, "mean": foldAverage, "avg": foldAverage, "total": foldSum, "sum": foldSum, "combined": foldSum, "overall": foldSum,
	"altogether": foldSum,
}

func (r *reading) folds() {
	for i := range r.ws {
		if f, ok := foldWords[r.lower(i)]; ok && !r.used[i] && r.foldOver(i, f) {
			return
		}
	}
	for i := range r.ws {
		if r.counts(i) {
			r.q.fold = foldCount
			return
		}
		if r.lower(i) == "how" && r.lower(i+1) == "much" {
			if f, at, n := r.after(i+1, 3, (*field).measure); f != nil {
				r.foldColumn(foldSum, f, at, n)
				return
			}
		}
	}
	if r.most {
		r.q.fold = foldCount
	}
}

// foldOver reads "average order amount" and "revenue in total".
func (r *reading) foldOver(i int, kind fold) bool {
	f, at, n := r.after(i, 5, (*field).measure)
	if f == nil {
		f, at, n = r.before(i, 5, (*field).measure)
	}
	if own, k := r.mention(i, (*field).measure); f == nil && own != nil {
		f, at, n = own, i, k
	}
	if f == nil && (r.names(i+1) || r.names(i+2)) {
		f, at, n = r.src.sized("large"), i, 1
	}
	if f == nil {
		return false
	}
	r.foldColumn(kind, f, at, n)
	r.use(i, 1)
	return true
}

func (r *reading) foldColumn(kind fold, f *field, at, n int) {
	r.q.fold, r.q.of = kind, f.column
	if r.q.by == f.column {
		r.q.by = ""
	}
	r.fits += fitWord
	r.use(at, n)
}

// counts reports whether a count is asked for at i. "How many employees does
// it have" asks for a column where there is one of that name.
func (r *reading) counts(i int) bool {
	var n int
	switch {
	case r.lower(i) == "how" && r.lower(i+1) == "many", r.lower(i) == "number" && r.lower(i+1) == "of":
		n = 2
	case r.lower(i) == "count" && !r.used[i]:
		n = 1
	default:
		return false
	}
	if f, _, _ := r.after(i+n-1, 1, (*field).measure); f != nil && !r.names(i+n) {
		return false
	}
	r.use(i, n)
	return true
}

// groups reads "per outlet", "for each city", "by status".
func (r *reading) groups() {
	for i := range r.ws {
		var at int
		switch w := r.lower(i); {
		case w == "per", r.q.fold != foldNone && (w == "each" || w == "every"):
			at = i
		case w == "by" && (strings.HasPrefix(r.stem(i-1), "group") || r.q.fold != foldNone && r.superAt < 0 && !sorts[r.lower(i-1)]):
			at = i
		default:
			continue
		}
		if f, n := r.grouping(at + 1); f != nil {
			r.q.per = append(r.q.per, f.column)
			r.fits += fitWord
			r.use(at, n+1)
		}
	}
	if len(r.q.per) > 0 && r.q.fold == foldNone {
		r.q.fold = foldCount
	}
	if r.q.fold != foldNone && len(r.q.per) == 0 && r.superAt >= 0 {
		r.groupOfExtreme()
	}
}

// grouping finds the column that a noun stands for; the noun of other records
// ("per outlet") is their identifier here.
func (r *reading) grouping(i int) (*field, int) {
	want := func(f *field) bool { return f.scalar() && !f.measure() }
	if f, n := r.mention(i, want); f != nil {
		return f, n
	}
	if i < len(r.ws) && r.vocabulary(i) {
		if f := r.src.best(r.ws[i].stem, fitWord, want); f != nil {
			return f, 1
		}
	}
	return nil, 0
}

// groupOfExtreme finds what "which outlet has the most orders" tells apart.
func (r *reading) groupOfExtreme() {
	for i := range r.ws {
		if r.used[i] || r.names(i) {
			continue
		}
		if f, n := r.grouping(i); f != nil {
			r.q.per = []string{f.column}
			r.q.by = r.q.foldColumn()
			r.unresolved = false
			if !plural(r.ws[i]) && r.q.limit == 0 {
				r.q.limit = 1
			}
			r.use(i, n)
			return
		}
	}
	r.unresolved = r.unresolved || r.most
	if r.q.of != "" { // "the highest total revenue" of records that have one each
		r.q.by = r.q.of
	}
	r.q.fold, r.q.of = foldNone, ""
}

// sorts are the words after which "by" names an order; the plural "orders" is
// a noun and not among them.
var sorts = set("sort sorted sorting order ordered ordering rank ranked ranking arrange arranged")
