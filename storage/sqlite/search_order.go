package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"aob.dev/writ/storage"
)

const columns = "SELECT d.row, d.id, d.position, d.body, "

// direction is the SQL for the order and for what comes after a place in it.
func (s *selection) direction() (order, after string) {
	if s.descending {
		return "DESC", "<"
	}
	return "ASC", ">"
}

// filtered adds the filters but the one that the statement enters by.
func (s *selection) filtered(b *statement, but int) {
	for i, f := range s.filters {
		if i == but {
			continue
		}
		b.add(" AND EXISTS (SELECT 1 FROM terms WHERE terms.row = d.row AND ")
		f.where(b, s.space)
		b.add(")")
	}
}

// narrowest returns the filter that leaves the fewest documents, or -1 if every
// one leaves too many to sort.
func (s *selection) narrowest(ctx context.Context, db *sql.DB) (int, error) {
	best, fewest := -1, int64(narrowLimit)
	for i, f := range s.filters {
		b := &statement{}
		b.add("SELECT count(*) FROM (SELECT 1 FROM terms WHERE ")
		f.where(b, s.space)
		b.add(" LIMIT ?)", narrowLimit)
		var n int64
		if err := db.QueryRowContext(ctx, b.text.String(), b.args...).Scan(&n); err != nil {
			return 0, err
		}
		if n < fewest {
			best, fewest = i, n
		}
	}
	return best, nil
}

// narrow enters by a filter and sorts what it leaves.
func (s *selection) narrow(by int) *statement {
	order, after := s.direction()
	b := &statement{}
	b.add("SELECT row, id, position, body, k FROM (")
	b.add(columns)
	if s.member == byPosition {
		b.add("d.position")
	} else {
		s.key(b)
	}
	b.add(" AS k FROM documents d WHERE d.row IN (SELECT row FROM terms WHERE ")
	s.filters[by].where(b, s.space)
	b.add(") AND")
	s.visible(b)
	s.filtered(b, by)
	b.add(")")
	if c := s.after; c != nil && c.Key != nil {
		b.add(" WHERE k IS NULL OR (k, row) "+after+" (?, ?)", c.Key, c.Row)
	} else if c != nil {
		b.add(" WHERE k IS NULL AND (position, row) > (?, ?)", c.Position, c.Row)
	}
	// Documents without the member go by position, ascending in both directions.
	row := "row"
	if s.descending {
		row = "iif(k IS NULL, row, -row)"
	}
	b.add(fmt.Sprintf(" ORDER BY k IS NULL, k %s, iif(k IS NULL, position, 0), %s", order, row))
	return b
}

// key adds the expression that equals the document's term of the sorted member,
// NULL where it has none.
func (s *selection) key(b *statement) {
	if slices.Contains(textMembers[s.index], s.member) {
		b.add("NULL")
		return
	}
	path := `$."` + s.member + `"`
	b.add(`CASE json_type(d.body, ?)
		WHEN 'text' THEN iif(octet_length(d.body ->> ?) <= ?, d.body ->> ?, NULL)
		WHEN 'integer' THEN d.body ->> ? WHEN 'real' THEN d.body ->> ?
		WHEN 'true' THEN 'true' WHEN 'false' THEN 'false' END`,
		path, path, termLimit, path, path, path)
}

// wideByPosition walks the index of positions.
func (s *selection) wideByPosition() *statement {
	order, after := s.direction()
	b := &statement{}
	b.add(columns+"d.position FROM documents d WHERE d.space = ? AND", s.space)
	s.visible(b)
	s.filtered(b, -1)
	if s.after != nil {
		b.add(" AND (d.position, d.row) "+after+" (?, ?)", s.after.Key, s.after.Row)
	}
	b.add(fmt.Sprintf(" ORDER BY d.position %[1]s, d.row %[1]s", order))
	return b
}

// wideByMember walks the terms of the sorted member.
func (s *selection) wideByMember() *statement {
	order, after := s.direction()
	b := &statement{}
	b.add(columns+`s.value FROM terms s CROSS JOIN documents d ON d.row = s.row
		WHERE s.space = ? AND s.member = (SELECT number FROM members WHERE name = ?) AND`, s.space, s.member)
	s.visible(b)
	s.filtered(b, -1)
	if s.after != nil {
		b.add(" AND (s.value, s.row) "+after+" (?, ?)", s.after.Key, s.after.Row)
	}
	b.add(fmt.Sprintf(" ORDER BY s.value %[1]s, s.row %[1]s", order))
	return b
}

// wideMissing walks those that have no term of the sorted member.
func (s *selection) wideMissing() *statement {
	b := &statement{}
	b.add(columns+"NULL FROM documents d WHERE d.space = ? AND", s.space)
	s.visible(b)
	s.filtered(b, -1)
	b.add(" AND ")
	s.key(b)
	b.add(" IS NULL")
	if s.after != nil {
		b.add(" AND (d.position, d.row) > (?, ?)", s.after.Position, s.after.Row)
	}
	b.add(" ORDER BY d.position, d.row")
	return b
}

// byText walks the full-text index; the space is a word of the query.
func (s *selection) byText(ctx context.Context, db *sql.DB, text string) (storage.Page, error) {
	match := matchQuery(s.space, text)
	if match == "" {
		return storage.Page{}, nil
	}
	b := &statement{}
	b.add(columns+"text.rank FROM text CROSS JOIN documents d ON d.row = text.rowid WHERE text MATCH ? AND", match)
	s.visible(b)
	s.filtered(b, -1)
	if s.after != nil {
		b.add(" AND (text.rank, d.row) > (?, ?)", s.after.Key, s.after.Row)
	}
	b.add(" ORDER BY text.rank, d.row")
	return s.page(ctx, db, b, nil)
}
