package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"
	"time"

	"aob.dev/writ/storage"
)

const (
	defaultLimit = 100
	maxLimit     = 1000
	// narrowLimit is how many documents may be sorted for one page. If a term
	// leaves fewer, they are looked up and sorted; else the order is walked by
	// its index and the terms are asked per document. Both give the same pages.
	narrowLimit = 2000
	byPosition  = "_position"
)

var memberName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)

// Search selects documents; see storage.Documents. It reads what was durable
// when it began. A malformed query is an error; an unknown member matches nothing.
func (d *Documents) Search(ctx context.Context, tenant, index string, q storage.Query) (storage.Page, error) {
	if err := d.broken.get(); err != nil {
		return storage.Page{}, err
	}
	page, err := d.search(ctx, tenant, index, q)
	if err != nil {
		return storage.Page{}, closedOr(fmt.Errorf("search %s: %w", index, err), d.requests.stop)
	}
	return page, nil
}

func (d *Documents) search(ctx context.Context, tenant, index string, q storage.Query) (storage.Page, error) {
	s := selection{index: index, limit: q.Limit}
	if s.limit == 0 {
		s.limit = defaultLimit
	}
	if s.limit < 1 || s.limit > maxLimit {
		return storage.Page{}, fmt.Errorf("limit must be 1 to %d", maxLimit)
	}
	var err error
	if s.after, err = parseCursor(q.After); err != nil {
		return storage.Page{}, err
	}
	if q.Now != "" {
		now, err := time.Parse(time.RFC3339, q.Now)
		if err != nil {
			return storage.Page{}, fmt.Errorf("now: %w", err)
		}
		s.now = now.UnixMilli()
	} else {
		s.now = math.MinInt64
	}
	if s.filters, err = filters(q.Terms); err != nil {
		return storage.Page{}, err
	}
	s.member, s.descending = strings.CutPrefix(q.Sort, "-")
	if s.member == "" {
		s.member = byPosition
	}
	if !memberName.MatchString(s.member) {
		return storage.Page{}, fmt.Errorf("sort %q is no member", q.Sort)
	}
	err = d.db.readers.QueryRowContext(ctx, "SELECT number FROM spaces WHERE name = ?", spaceName(tenant, index)).Scan(&s.space)
	if errors.Is(err, sql.ErrNoRows) {
		return storage.Page{}, nil
	}
	if err != nil {
		return storage.Page{}, err
	}
	if q.Text != "" {
		return s.byText(ctx, d.db.readers, q.Text)
	}
	return s.byOrder(ctx, d.db.readers)
}

// selection is a query that was understood.
type selection struct {
	space      int64
	index      string
	filters    []filter
	now        int64 // milliseconds
	member     string
	descending bool
	after      *cursor
	limit      int
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

// visible adds what holds for every document that may be returned. The plus
// keeps the planner from entering by the space: the caller has chosen the way in.
func (s *selection) visible(b *statement) {
	b.add(" +d.space = ? AND (d.ttl IS NULL OR d.ttl >= ?)", s.space, s.now)
}

// byOrder answers a query without text.
func (s *selection) byOrder(ctx context.Context, db *sql.DB) (storage.Page, error) {
	narrow, err := s.narrowest(ctx, db)
	if err != nil {
		return storage.Page{}, err
	}
	if narrow >= 0 {
		return s.page(ctx, db, s.narrow(narrow), nil)
	}
	if s.member == byPosition {
		return s.page(ctx, db, s.wideByPosition(), nil)
	}
	if s.after != nil && s.after.Key == nil {
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
	b.add(" LIMIT ?", s.limit-len(docs)+1) // one more shows whether there is a next page
	rows, err := db.QueryContext(ctx, b.text.String(), b.args...)
	if err != nil {
		return storage.Page{}, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	p.Documents = docs
	last := cursor{Position: math.MinInt64} // before all that have no key
	for rows.Next() {
		if len(p.Documents) == s.limit {
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
		p.Documents = append(p.Documents, doc)
	}
	return p, rows.Err()
}
