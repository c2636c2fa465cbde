package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	_ "modernc.org/sqlite/vec" // vec_distance_cosine

	"aob.dev/writ/storage"
)

const columns = "SELECT d.row, d.id, d.position, d.body, "

// direction is the SQL for the sort order and for what comes after a place in it.
func (s *selection) direction() (order, after string) {
	if s.Descending {
		return "DESC", "<"
	}
	return "ASC", ">"
}

// unexpired adds the conditions of visible, for rows that are already of the space. It
// reads no document: those lie far apart, and a search meets many to return few.
func (s *selection) unexpired(b *statement, row string) {
	b.add(" AND "+row+" NOT IN (SELECT row FROM documents INDEXED BY documents_ttl WHERE space = ? AND ttl < ?)", s.space, s.now)
}

// filtered adds the filters but the one that the statement enters by. Each looks up the
// terms of the one document: by member and value, a range would walk all its terms.
func (s *selection) filtered(b *statement, row string, but int) {
	for i, f := range s.filters {
		if i == but {
			continue
		}
		b.add(" AND EXISTS (SELECT 1 FROM terms INDEXED BY terms_row WHERE terms.row = " + row + " AND ")
		f.where(b, s.space)
		b.add(")")
	}
}

// narrowest returns the filter that leaves the fewest documents, or -1 if every
// one leaves the limit or more.
func (s *selection) narrowest(ctx context.Context, db *sql.DB, limit int64) (int, error) {
	best, fewest := -1, limit
	for i, f := range s.filters {
		b := &statement{}
		b.add("SELECT count(*) FROM (SELECT 1 FROM terms WHERE ")
		f.where(b, s.space)
		b.add(" LIMIT ?)", fewest)
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

// narrow enters by a filter and sorts what it leaves. Only the bodies of the page are read.
func (s *selection) narrow(by int) *statement {
	_, after := s.direction()
	b := &statement{}
	b.add("SELECT d.row, d.id, d.position, d.body, n.k FROM (SELECT row, position, k FROM (SELECT d.row AS row, d.position AS position, ")
	if s.ByPosition {
		b.add("d.position")
	} else {
		s.key(b)
	}
	b.add(" AS k FROM documents d WHERE d.row IN (SELECT row FROM terms WHERE ")
	s.filters[by].where(b, s.space)
	b.add(") AND")
	s.visible(b)
	s.filtered(b, "d.row", by)
	b.add(")")
	if c := s.after; c != nil && c.Key != nil {
		b.add(" WHERE k IS NULL OR (k, row) "+after+" (?, ?)", c.Key, c.Row)
	} else if c != nil {
		b.add(" WHERE k IS NULL AND (position, row) > (?, ?)", c.Position, c.Row)
	}
	b.add(s.ordered("")+" LIMIT ?) n CROSS JOIN documents d ON d.row = n.row"+s.ordered("n."), s.Limit+1)
	return b
}

// ordered is the sort order of narrow over columns k, position and row. Documents without the
// member go by position, ascending in both directions.
func (s *selection) ordered(of string) string {
	order, _ := s.direction()
	row := of + "row"
	if s.Descending {
		row = fmt.Sprintf("iif(%[1]sk IS NULL, %[1]srow, -%[1]srow)", of)
	}
	return fmt.Sprintf(" ORDER BY %[1]sk IS NULL, %[1]sk %[2]s, iif(%[1]sk IS NULL, %[1]sposition, 0), %[3]s", of, order, row)
}

// key adds the document's term of the sorted member, NULL where it has none.
func (s *selection) key(b *statement) {
	if s.Sort == nil {
		b.add("NULL")
		return
	}
	b.add("(SELECT value FROM terms INDEXED BY terms_row WHERE row = d.row AND member = (SELECT number FROM members WHERE name = ?))", s.Sort.Name)
}

// wideByPosition walks the index of positions.
func (s *selection) wideByPosition() *statement {
	order, after := s.direction()
	b := &statement{}
	b.add(columns+"d.position FROM documents d WHERE d.space = ? AND", s.space)
	s.visible(b)
	s.filtered(b, "d.row", -1)
	if s.after != nil {
		b.add(" AND (d.position, d.row) "+after+" (?, ?)", s.after.Key, s.after.Row)
	}
	b.add(fmt.Sprintf(" ORDER BY d.position %[1]s, d.row %[1]s", order))
	return b
}

// wideByMember walks the terms of the sorted member, from bound to bound if it is filtered.
func (s *selection) wideByMember() *statement {
	order, after := s.direction()
	b := &statement{}
	b.add(columns+`s.value FROM terms s CROSS JOIN documents d ON d.row = s.row
		WHERE s.space = ? AND s.member = (SELECT number FROM members WHERE name = ?) AND`, s.space, s.Sort.Name)
	s.visible(b)
	bounds := slices.IndexFunc(s.filters, func(f filter) bool { return f.member == s.Sort.Name })
	if bounds >= 0 {
		s.filters[bounds].bounded(b, "s.value")
	}
	s.filtered(b, "d.row", bounds)
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
	s.filtered(b, "d.row", -1)
	b.add(" AND ")
	s.key(b)
	b.add(" IS NULL")
	if s.after != nil {
		b.add(" AND (d.position, d.row) > (?, ?)", s.after.Position, s.after.Row)
	}
	b.add(" ORDER BY d.position, d.row")
	return b
}

// matching adds that a row of text is of the space and has a word of the query.
func (s *selection) matching(b *statement, match string) {
	b.add(" text MATCH ? AND text.rowid BETWEEN ? AND ?", match, textRow(s.space, 0), textRow(s.space+1, 0)-1)
}

// byText walks the words of the space. The condition that leaves the fewest is
// applied first.
func (s *selection) byText(ctx context.Context, db *sql.DB, q storage.Query) (storage.Page, error) {
	match, err := matchQuery(ctx, db, q)
	if err != nil || match == "" {
		return storage.Page{}, err
	}
	first, err := s.narrowest(ctx, db, matchLimit)
	if err != nil {
		return storage.Page{}, err
	}
	s.score = func(rank float64) float64 { return -rank }
	return s.page(ctx, db, s.best(match, first), nil)
}

// best walks the documents that match, if first is not -1 only those that this filter selects.
func (s *selection) best(match string, first int) *statement {
	row := fmt.Sprintf("(text.rowid - %d)", textRow(s.space, 0))
	b := &statement{}
	// The bodies are read of the best only.
	b.add(columns + "n.rank FROM (SELECT " + row + " AS row, text.rank AS rank FROM text WHERE")
	s.matching(b, match)
	if first >= 0 {
		b.add(" AND " + row + " IN (SELECT row FROM terms WHERE ")
		s.filters[first].where(b, s.space)
		b.add(")")
	}
	s.unexpired(b, row)
	s.filtered(b, row, first)
	if s.after != nil {
		b.add(" AND (text.rank, "+row+") > (?, ?)", s.after.Key, s.after.Row)
	}
	b.add(` ORDER BY text.rank, text.rowid LIMIT ?) n CROSS JOIN documents d ON d.row = n.row
		WHERE +d.space = ? ORDER BY n.rank, n.row`, s.Limit+1, s.space)
	return b
}

// byVector compares with every vector that the filters leave: the answer is exact.
func (s *selection) byVector(ctx context.Context, db *sql.DB, v storage.Vector) (storage.Page, error) {
	narrow, err := s.narrowest(ctx, db, compareLimit)
	if err != nil {
		return storage.Page{}, err
	}
	s.score = func(distance float64) float64 { return 1 - distance }
	return s.page(ctx, db, s.nearest(v, narrow), nil)
}

// nearest walks the vectors of the space, if narrow is not -1 only those of documents that this
// filter selects.
func (s *selection) nearest(v storage.Vector, narrow int) *statement {
	value := vectorBytes(v.Values)
	b := &statement{}
	// The bodies are read of the nearest only.
	b.add(columns+`n.distance FROM (SELECT v.row, vec_distance_cosine(v.value, ?) AS distance
		FROM vectors v WHERE v.space = ? AND v.member = (SELECT number FROM members WHERE name = ?) AND length(v.value) = ?`,
		value, s.space, v.Member, len(value))
	s.unexpired(b, "+v.row")
	if narrow >= 0 {
		b.add(" AND v.row IN (SELECT row FROM terms WHERE ")
		s.filters[narrow].where(b, s.space)
		b.add(")")
	}
	s.filtered(b, "+v.row", narrow)
	b.add(` ORDER BY distance, v.row LIMIT ?) n CROSS JOIN documents d ON d.row = n.row
		WHERE +d.space = ? ORDER BY n.distance, n.row`, s.Limit, s.space)
	return b
}
