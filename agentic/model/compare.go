package model

import (
	"slices"
	"strconv"
)

// comparators lead from words before a number to a comparison; the longest
// match at a place wins.
var comparators = []struct {
	words []string
	op    string
}{
	{[]string{"no", "more", "than"}, opMost},
	{[]string{"not", "more", "than"}, opMost},
	{[]string{"no", "less", "than"}, opLeast},
	{[]string{"greater", "than", "or", "equal", "to"}, opLeast},
	{[]string{"less", "than", "or", "equal", "to"}, opMost},
	{[]string{"more", "than"}, opOver},
	{[]string{"less", "than"}, opUnder},
	{[]string{"fewer", "than"}, opUnder},
	{[]string{"at", "least"}, opLeast},
	{[]string{"at", "most"}, opMost},
	{[]string{"up", "to"}, opMost},
	{[]string{"over"}, opOver},
	{[]string{"above"}, opOver},
	{[]string{"exceeding"}, opOver},
	{[]string{"exceed"}, opOver},
	{[]string{"beyond"}, opOver},
	{[]string{"under"}, opUnder},
	{[]string{"below"}, opUnder},
	{[]string{"after"}, opOver},
	{[]string{"since"}, opLeast},
	{[]string{"before"}, opUnder},
	{[]string{"until"}, opMost},
	{[]string{"from"}, opLeast},
	{[]string{"on"}, opMention},
	{[]string{">="}, opLeast},
	{[]string{"≥"}, opLeast},
	{[]string{"<="}, opMost},
	{[]string{"≤"}, opMost},
	{[]string{">"}, opOver},
	{[]string{"<"}, opUnder},
	{[]string{"equal", "to"}, opIs},
	{[]string{"equals"}, opIs},
	{[]string{"exactly"}, opIs},
	{[]string{"="}, opIs},
}

// smaller are the comparatives that look for the small end.
var smaller = stems("small low short weak cheap light slow young few little less near old early shallow")

func (r *reading) comparisons() {
	for i := range r.ws {
		op, n, adjective := r.comparator(i)
		at := i + n
		if op == "" || at >= len(r.ws) || r.used[at] {
			continue
		}
		switch w := r.ws[at]; {
		case w.date:
			r.compareDate(i, n, op)
		case slices.Contains([]string{"on", "from", "since", "before", "after", "until"}, r.lower(i)):
		case w.isNum:
			r.compareNumber(i, n, op, adjective)
		default: // "at least magnitude 5"
			if f, k := r.mention(at, (*field).measure); f != nil && at+k < len(r.ws) && r.ws[at+k].isNum {
				r.compare(f, at+k, op)
				r.use(i, n+k)
			}
		}
	}
	r.between()
	r.equals()
}

// equals reads "magnitude 6" and "magnitude of 6 or more".
func (r *reading) equals() {
	for i, w := range r.ws {
		if !w.digits || r.used[i] {
			continue
		}
		f, at, n := r.before(i, 2, (*field).measure)
		if f == nil || at+n != i && !stop[r.stem(i-1)] {
			continue
		}
		op := opIs
		if r.lower(i+1) == "or" {
			switch after := r.lower(i + 2); {
			case after == "more" || after == "above" || after == "over" || after == "higher" || after == "greater" || after == "larger" || after == "stronger":
				op = opLeast
			case after == "less" || after == "below" || after == "under" || after == "lower" || after == "fewer" || after == "smaller" || after == "weaker":
				op = opMost
			}
			if op != opIs {
				r.use(i+1, 2)
			}
		}
		r.compare(f, i, op)
		r.use(at, n)
	}
}

// comparator recognises a comparison that starts at i and has n words.
func (r *reading) comparator(i int) (op string, n int, adjective string) {
	for _, c := range comparators {
		match := len(c.words) > n
		for k, w := range c.words {
			match = match && r.lower(i+k) == w
		}
		if match {
			op, n = c.op, len(c.words)
		}
	}
	if base, ok := asComparative(r.ws[i]); ok && n == 0 && r.lower(i+1) == "than" {
		if op = opOver; smaller[stem(base)] {
			op = opUnder
		}
		return op, 2, base
	}
	return op, n, ""
}

func (r *reading) compareNumber(i, n int, op, adjective string) {
	at := i + n
	f, from, k := r.compared(i, at, adjective)
	if f == nil {
		return
	}
	r.compare(f, at, op)
	r.use(i, n)
	r.use(from, k)
}

// compare keeps the records whose measure compares so with the number at a place.
func (r *reading) compare(f *field, at int, op string) {
	r.where(f, op, number(r.ws[at].number))
	r.fits += fitWord
	r.use(at, 1)
	r.unit(f, at+1)
}

// unit uses up the unit of a number, where it is one of money or of the field.
func (r *reading) unit(f *field, i int) {
	if currency[r.stem(i)] || f.about[r.stem(i)] {
		r.use(i, 1)
	}
}

// compared finds the measure that a number is compared with: named by the
// adjective, just before, just after, or the only sensible one. A number of
// something that is not a field is left alone.
func (r *reading) compared(i, at int, adjective string) (f *field, from, n int) {
	if adjective != "" {
		if f := r.src.measured(adjective); f != nil {
			return f, i, 0
		}
	}
	if f, from, n := r.before(i, 4, (*field).measure); f != nil {
		return f, from, n
	}
	if f, from, n := r.after(at, 2, (*field).measure); f != nil {
		return f, from, n
	}
	next := at + 1
	if next < len(r.ws) && r.ws[next].content() && !currency[r.stem(next)] && (r.names(next) || !r.ws[next].proper && !r.src.about[r.stem(next)]) {
		return nil, 0, 0
	}
	return r.src.sized("large"), i, 0
}

func (r *reading) compareDate(i, n int, op string) {
	f, from, k := r.before(i, 3, (*field).when)
	if f == nil {
		f, from, k = r.src.timed(), i, 0
	}
	if f == nil {
		return
	}
	r.where(f, op, quoteJSON(r.ws[i+n].text))
	r.use(i, n+1)
	r.use(from, k)
}

// between reads "between 4 and 5".
func (r *reading) between() {
	for i := range r.ws {
		if r.lower(i) != "between" || i+3 >= len(r.ws) || r.lower(i+2) != "and" || r.used[i+1] {
			continue
		}
		low, high := r.ws[i+1], r.ws[i+3]
		switch {
		case low.isNum && high.isNum:
			if f, from, n := r.compared(i, i+3, ""); f != nil {
				r.where(f, opLeast, number(low.number))
				r.where(f, opMost, number(high.number))
				r.use(from, n)
				r.use(i, 4)
				r.unit(f, i+4)
			}
		case low.date && high.date:
			if f := r.src.timed(); f != nil {
				r.where(f, opLeast, quoteJSON(low.text))
				r.where(f, opMost, quoteJSON(high.text))
				r.use(i, 4)
			}
		}
	}
}

func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
