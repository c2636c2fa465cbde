package model

import "slices"

// wideRecord is from how many fields on a question that names no columns gets
// the telling ones and not all.
const wideRecord = 7

// selected finds the columns that the task asks for, in the order it does.
func (r *reading) selected() {
	if r.q.fold != foldNone {
		return
	}
	for i := range r.ws {
		switch r.lower(i) {
		case "where":
			if k := slices.IndexFunc(r.src.records.fields, (*field).where); k >= 0 {
				r.column(r.src.records.fields[k], i, 1)
			}
		case "when":
			if f := r.src.timed(); f != nil {
				r.column(f, i, 1)
			}
		case "how":
			r.howMuch(i)
		default:
			if f, n := r.mention(i, anyField); f != nil && (!r.used[i] || f.column == r.q.by) {
				r.column(f, i, n)
			}
		}
	}
}

func (r *reading) howMuch(i int) {
	if i+1 >= len(r.ws) || r.used[i] || !r.ws[i+1].content() || r.lower(i+1) == "many" {
		return
	}
	if f := r.src.measured(r.stem(i + 1)); f != nil {
		r.column(f, i, 2)
	} else if f, _ := r.mention(i+1, anyField); f == nil {
		r.missing = append(r.missing, "how "+r.ws[i+1].text)
	}
}

func (r *reading) column(f *field, at, n int) {
	r.use(at, n)
	r.fits += fitWord
	if !slices.Contains(r.q.columns, f.column) {
		r.q.columns = append(r.q.columns, f.column)
	}
}

// settle completes the columns and leaves out records that lack what was asked
// for: a place that is not known is no answer to "which places".
func (r *reading) settle() {
	asked := slices.Clone(r.q.columns)
	if r.q.fold != foldNone {
		asked = slices.Clone(r.q.per)
		r.q.columns = nil
	} else {
		r.complete()
	}
	for _, c := range asked {
		if f := r.src.records.field(c); f != nil && f.node.nullable && c != r.q.by { // an order has no place for null anyway
			r.where(f, opKnown, "")
		}
	}
}

func (r *reading) complete() {
	add := func(f *field) {
		if f != nil && !slices.Contains(r.q.columns, f.column) {
			r.q.columns = append(r.q.columns, f.column)
		}
	}
	named := len(r.q.columns) > 0 && (len(r.q.columns) > 1 || r.q.columns[0] != r.q.by)
	telling := slices.ContainsFunc(r.q.columns, func(c string) bool {
		f := r.src.records.field(c)
		return f != nil && (!f.measure() || f.when())
	})
	if (!telling || !named) && r.src.records.list {
		own := r.q.columns
		r.q.columns = nil
		add(r.src.label())
		for _, c := range own {
			add(r.src.records.field(c))
		}
	}
	by := r.src.records.field(r.q.by)
	if add(by); named || by != nil && r.superAt >= 0 && !by.when() {
		return
	}
	if len(r.src.records.fields) < wideRecord {
		for _, f := range r.src.records.fields {
			add(f)
		}
		return
	}
	for _, c := range r.q.where {
		if c.op == opIs {
			continue // the same in every row
		}
		add(r.src.records.field(c.column))
	}
	add(r.src.timed())
	add(r.src.sized("large"))
}

// shape is the shorthand of the query's result on a source.
func (q *query) shape(src records) string {
	if q.fold != foldNone && len(q.per) == 0 {
		return "{" + q.foldColumn() + ": " + q.foldShape(src) + "}"
	}
	list := ""
	for i, c := range q.output() {
		if i > 0 {
			list += ", "
		}
		list += c
		if t := q.columnShape(src, c); t != "" {
			list += ": " + t
		}
	}
	if !src.list && q.from == 0 {
		return "{" + list + "}"
	}
	return "array<{" + list + "}>"
}

func (q *query) columnShape(src records, column string) string {
	if column == q.foldColumn() {
		return q.foldShape(src)
	}
	f := src.field(column)
	if f == nil {
		return ""
	}
	return f.shape(column == q.by || slices.ContainsFunc(q.where, func(c condition) bool { return c.column == column && c.op != opNot }))
}

func (q *query) foldShape(src records) string {
	f := src.field(q.of)
	if q.fold == foldCount || f != nil && f.node.is("integer") && !f.node.is("number") && q.fold != foldAverage {
		return "integer"
	}
	return "number"
}
