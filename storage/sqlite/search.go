package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"aob.dev/writ/storage"
)

// narrowLimit is how many documents may be sorted for one page. If a filter selects
// fewer, they are looked up and sorted. Else the index of the sort order is read, and each
// document is checked against the filters. Both give the same pages.
const narrowLimit = 20_000

// enterLimit is how many documents a filter may select for an aggregation to look up only
// those, instead of all of the space.
const enterLimit = 1_000_000

// readTime bounds one read. A reader prevents the restart of the write-ahead log.
const readTime = 5 * time.Second

// compareLimit is how many documents a filter may select for a vector search to compare
// only those, instead of all vectors of the space.
const compareLimit = 50_000

// matchLimit is how many documents a filter may select for a text search to hold them
// in a set, instead of checking every document that matches the text.
const matchLimit = 20_000

// Search selects documents; see storage.Documents. It reads what was durable
// when it began. A malformed query is an error; an unknown member matches nothing.
func (d *Documents) Search(ctx context.Context, tenant, index string, q storage.Query) (storage.Page, error) {
	page, err := bounded(ctx, func(ctx context.Context) (storage.Page, error) { return d.search(ctx, tenant, index, q) })
	if err != nil {
		return storage.Page{}, d.closedOr(fmt.Errorf("search %s: %w", index, err))
	}
	return page, nil
}

// bounded runs a read that must not last; storage.ErrSlow if it does.
func bounded[T any](ctx context.Context, read func(context.Context) (T, error)) (T, error) {
	short, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	out, err := read(short)
	if err != nil && short.Err() != nil && ctx.Err() == nil {
		err = storage.ErrSlow
	}
	return out, err
}

func (d *Documents) search(ctx context.Context, tenant, index string, q storage.Query) (storage.Page, error) {
	s, err := d.selection(ctx, tenant, index, q)
	if err != nil || s == nil {
		return storage.Page{}, err
	}
	switch {
	case q.Vector != nil:
		return s.byVector(ctx, d.db.readers, *q.Vector)
	case q.Text != "":
		return s.byText(ctx, d.db.readers, q)
	default:
		return s.byOrder(ctx, d.db.readers)
	}
}

// selection checks a query. It is nil without an error if the query selects nothing.
func (d *Documents) selection(ctx context.Context, tenant, index string, q storage.Query) (*selection, error) {
	if err := d.Failure(); err != nil {
		return nil, err
	}
	understood, err := q.Understand(index)
	if err != nil {
		return nil, err
	}
	s := &selection{Selection: understood, filters: filters(understood), now: math.MinInt64}
	if !s.Now.IsZero() {
		s.now = s.Now.UnixMilli()
	}
	if s.after, err = parseCursor(q.After); err != nil {
		return nil, err
	}
	err = d.db.readers.QueryRowContext(ctx, "SELECT number FROM spaces WHERE name = ?", spaceName(tenant, index)).Scan(&s.space)
	if errors.Is(err, sql.ErrNoRows) || err == nil && s.Nothing {
		return nil, nil //nolint:nilnil // nothing is an answer
	}
	return s, err
}

// selection is a query that was understood, in one space.
type selection struct {
	storage.Selection
	space   int64
	filters []filter
	now     int64 // milliseconds
	after   *cursor
	score   func(key float64) float64 // of the sort key; nil: there is none
}

// statement is SQL with its arguments, built in one go so that they stay together.
type statement struct {
	text strings.Builder
	args []any
}

func (b *statement) add(text string, args ...any) {
	b.text.WriteString(text)
	b.args = append(b.args, args...)
}

// visible adds the conditions on every document that may be returned. The plus
// keeps the planner from entering by the space: the caller has chosen the index.
func (s *selection) visible(b *statement) {
	b.add(" +d.space = ? AND (d.ttl IS NULL OR d.ttl >= ?)", s.space, s.now)
	if s.Before != 0 {
		b.add(" AND +d.position < ?", s.Before)
	}
}

// byOrder answers a query without text.
func (s *selection) byOrder(ctx context.Context, db *sql.DB) (storage.Page, error) {
	narrow, err := s.narrowest(ctx, db, narrowLimit)
	if err != nil {
		return storage.Page{}, err
	}
	switch {
	case narrow >= 0:
		return s.page(ctx, db, s.narrow(narrow), nil)
	case s.ByPosition:
		return s.page(ctx, db, s.wideByPosition(), nil)
	case s.Sort == nil, s.after != nil && s.after.Key == nil:
		return s.page(ctx, db, s.wideMissing(), nil)
	}
	page, err := s.page(ctx, db, s.wideByMember(), nil)
	if err != nil || page.Cursor != "" {
		return page, err
	}
	// The member's values end here; those without one follow.
	s.after = nil
	return s.page(ctx, db, s.wideMissing(), page.Documents)
}

// page runs a statement that yields row, id, position, body and key in order,
// and appends up to the limit.
func (s *selection) page(ctx context.Context, db *sql.DB, b *statement, docs []storage.Document) (p storage.Page, err error) {
	b.add(" LIMIT ?", s.Limit-len(docs)+1) // one more shows whether there is a next page
	rows, err := db.QueryContext(ctx, b.text.String(), b.args...)
	if err != nil {
		return storage.Page{}, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	p.Documents = docs
	last := cursor{Position: math.MinInt64} // before all that have no key
	for rows.Next() {
		if len(p.Documents) == s.Limit {
			p.Cursor = last.String()
			break
		}
		var doc storage.Document
		var body []byte
		last = cursor{}
		if err := rows.Scan(&last.Row, &doc.ID, &doc.Position, &body, &last.Key); err != nil {
			return storage.Page{}, err
		}
		doc.Body = body
		if last.Key == nil {
			last.Position = doc.Position
		}
		if key, ok := last.Key.(float64); ok && s.score != nil {
			doc.Score = s.score(key)
		}
		p.Documents = append(p.Documents, doc)
	}
	return p, rows.Err()
}

// filter is one condition on a member: any of some values, or bounds.
type filter struct {
	member string // as in the table members
	values []any
	bounds []bound
}

type bound struct {
	operator string
	value    any
}

// filters of a selection, ranges first: they are counted first, and are mostly of a short time.
func filters(q storage.Selection) []filter {
	list := make([]filter, 0, len(q.Terms)+len(q.Ranges))
	for _, r := range q.Ranges {
		f := filter{member: memberOf(r.Field)}
		for _, b := range []bound{{">=", r.GTE}, {">", r.GT}, {"<=", r.LTE}, {"<", r.LT}} {
			if b.value != nil {
				f.bounds = append(f.bounds, b)
			}
		}
		list = append(list, f)
	}
	for _, t := range q.Terms {
		list = append(list, filter{member: memberOf(t.Field), values: t.Values})
	}
	return list
}

// memberOf is under which name a field's terms are.
func memberOf(f storage.Field) string {
	if f.Many {
		return f.Name + arrayMark
	}
	return f.Name
}

// where adds the condition on the table terms.
func (f filter) where(b *statement, space int64) {
	b.add("terms.space = ? AND terms.member = (SELECT number FROM members WHERE name = ?)", space, f.member)
	f.bounded(b, "terms.value")
}

// bounded adds the condition on a term's value.
func (f filter) bounded(b *statement, value string) {
	for i, v := range f.values {
		b.add(map[bool]string{true: " AND " + value + " IN (?", false: ", ?"}[i == 0], v)
	}
	if len(f.values) > 0 {
		b.add(")")
	}
	for _, bound := range f.bounds {
		b.add(" AND "+value+" "+bound.operator+" ?", bound.value)
	}
}

// cursor is the place of the last document of a page in the order of its query:
// by key if it has one, else, after all that have one, by position; then by row.
type cursor struct {
	Key      any   `json:"k,omitempty"` // string, int64 or float64; nil: the document has none
	Position int64 `json:"p,omitempty"`
	Row      int64 `json:"r"`
}

var errCursor = errors.New("malformed cursor")

func (c cursor) String() string {
	b, err := json.Marshal(c)
	if err != nil {
		return "" // strings and finite numbers always marshal
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

func parseCursor(s string) (*cursor, error) {
	if s == "" {
		return nil, nil //nolint:nilnil // the first page has no cursor
	}
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		return nil, errCursor
	}
	var c cursor
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	dec.DisallowUnknownFields()
	if err := dec.Decode(&c); err != nil || dec.More() {
		return nil, errCursor
	}
	switch k := c.Key.(type) {
	case nil, string:
	case json.Number:
		if n, err := k.Int64(); err == nil {
			c.Key = n
		} else if c.Key, err = k.Float64(); err != nil {
			return nil, errCursor
		}
	default:
		return nil, errCursor
	}
	return &c, nil
}
