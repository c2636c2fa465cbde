package storage

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

const (
	defaultLimit = 100
	maxLimit     = 1000
	// maxValues bounds the values of one member in a query.
	maxValues = 256
)

// ByPosition is the order of a query that names no other.
const ByPosition = "_position"

var memberName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)

// Selection is a checked query, the same for every driver.
type Selection struct {
	// Nothing: some condition cannot hold, so the answer is empty.
	Nothing    bool
	Terms      []Terms  // by member; their values are typed
	Ranges     []Bounds // by member
	Before     int64    // position; 0: any
	Sort       *Field   // nil: by position, as no document has the member
	ByPosition bool     // sorted by position
	Descending bool
	Limit      int
	Now        time.Time // zero: expired documents are not filtered
}

// Terms is one member of Query.Terms.
type Terms struct {
	Field  Field
	Values []any // string, int64 or float64; at least one
}

// Bounds is one member of Query.Ranges; a bound that is not set is nil.
type Bounds struct {
	Field            Field
	GTE, GT, LTE, LT any
}

// Understand checks a query. The cursor is the driver's to check.
func (q Query) Understand(index string) (Selection, error) {
	s := Selection{Limit: q.Limit, Before: q.Before}
	if s.Limit == 0 {
		s.Limit = defaultLimit
	}
	if s.Limit < 1 || s.Limit > maxLimit {
		return s, fmt.Errorf("limit must be 1 to %d", maxLimit)
	}
	if q.Now != "" {
		var err error
		if s.Now, err = time.Parse(time.RFC3339, q.Now); err != nil {
			return s, fmt.Errorf("now: %w", err)
		}
	}
	if q.Before != 0 && (q.Text != "" || q.Vector != nil) {
		return s, errors.New("a position bounds no text and no vector")
	}
	list, err := Fields(index)
	if err != nil {
		return s, err
	}
	if err := errors.Join(s.terms(list, q.Terms), s.every(list, q.Every), s.ranges(list, q.Ranges), s.order(list, q.Sort), s.vector(list, q)); err != nil {
		return s, err
	}
	return s, nil
}

func (s *Selection) terms(list []Field, terms map[string][]string) error {
	for _, member := range slices.Sorted(maps.Keys(terms)) {
		if !memberName.MatchString(member) {
			return fmt.Errorf("term %q is no member", member)
		}
		if len(terms[member]) > maxValues {
			return fmt.Errorf("term %s: more than %d values", member, maxValues)
		}
		t := Terms{Field: find(list, member)}
		for _, text := range terms[member] {
			if v, ok := t.Field.Parse(text); ok {
				t.Values = append(t.Values, v)
			}
		}
		s.Nothing = s.Nothing || len(t.Values) == 0
		s.Terms = append(s.Terms, t)
	}
	return nil
}

// every is one condition for each value.
func (s *Selection) every(list []Field, terms map[string][]string) (err error) {
	for member, values := range terms {
		if len(values) > maxValues {
			return fmt.Errorf("every %s: more than %d values", member, maxValues)
		}
		for _, value := range values {
			err = errors.Join(err, s.terms(list, map[string][]string{member: {value}}))
		}
	}
	return err
}

func (s *Selection) ranges(list []Field, ranges map[string]Range) error {
	for _, member := range slices.Sorted(maps.Keys(ranges)) {
		if !memberName.MatchString(member) {
			return fmt.Errorf("range %q is no member", member)
		}
		r, b := ranges[member], Bounds{Field: find(list, member)}
		if r == (Range{}) {
			return fmt.Errorf("range %s has no bound", member)
		}
		if !b.Field.Ordered() {
			s.Nothing = true
			continue
		}
		for text, bound := range map[*string]*any{&r.GTE: &b.GTE, &r.GT: &b.GT, &r.LTE: &b.LTE, &r.LT: &b.LT} {
			if *text == "" {
				continue
			}
			v, ok := b.Field.Parse(*text)
			if !ok {
				return fmt.Errorf("range %s: a bound is no %s", member, b.Field.Kind)
			}
			*bound = v
		}
		s.Ranges = append(s.Ranges, b)
	}
	return nil
}

func (s *Selection) order(list []Field, sort string) error {
	member, descending := strings.CutPrefix(sort, "-")
	s.Descending = descending
	if member == "" || member == ByPosition {
		s.ByPosition = true
		return nil
	}
	if !memberName.MatchString(member) {
		return fmt.Errorf("sort %q is no member", sort)
	}
	if f := find(list, member); f.Ordered() && !f.Many {
		s.Sort = &f
	}
	return nil
}

func (s *Selection) vector(list []Field, q Query) error {
	switch {
	case q.Vector == nil:
		return nil
	case q.Text != "" || q.Sort != "" || q.After != "":
		return errors.New("a vector goes together with no text, order or cursor")
	case find(list, q.Vector.Member).Kind != Dense:
		return fmt.Errorf("%q is no vector of the index", q.Vector.Member)
	case !slices.ContainsFunc(q.Vector.Values, func(v float32) bool { return v != 0 }):
		return errors.New("a vector that is all zero has no neighbours")
	}
	return nil
}

// Ordered reports whether values of the kind can be sorted by and bounded.
func (f Field) Ordered() bool {
	switch f.Kind {
	case Keyword, Integer, Long, Double, Boolean, Date:
		return true
	default:
		return false
	}
}

// find returns a field of no kind for a member that is none.
func find(list []Field, name string) Field {
	i := slices.IndexFunc(list, func(f Field) bool { return f.Name == name })
	if i < 0 {
		return Field{Name: name}
	}
	return list[i]
}

// Understand checks an aggregation and returns its fields: by, and of if there is
// one. A member that the index has not, or that cannot be put into buckets, is an
// error.
func (a Aggregation) Understand(index string) (by, of Field, err error) {
	list, err := Fields(index)
	if err != nil {
		return by, of, err
	}
	if a.By != "" {
		if by = find(list, a.By); !by.Ordered() {
			return by, of, fmt.Errorf("there are no buckets of %q", a.By)
		}
	}
	if a.ValueMember != "" {
		of = find(list, a.ValueMember)
		if of.Many || of.Kind != Integer && of.Kind != Long && of.Kind != Double {
			return by, of, fmt.Errorf("%q is no number", a.ValueMember)
		}
	}
	return by, of, nil
}

// maxWords bounds the words of a full-text query; the rest is ignored.
const maxWords = 64

// Words are what a full-text query looks for: runs of letters, numbers and marks. They
// have no syntax, and are the same for every driver.
func Words(text string) []string {
	list := strings.FieldsFunc(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r)
	})
	return list[:min(len(list), maxWords)]
}

// MaxSpellings bounds the words that a fuzzy query tries for one of its own.
const MaxSpellings = 64

// Edits is how many letters a fuzzy query lets a word have added, left out, replaced or swapped with the next. The
// first letter must be right.
func Edits(word string) int {
	switch n := utf8.RuneCountInString(word); {
	case n < 3:
		return 0
	case n < 6:
		return 1
	}
	return 2
}
