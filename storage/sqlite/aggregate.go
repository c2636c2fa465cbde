package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"aob.dev/writ/storage"
)

// Aggregate counts what a query selects; see storage.Documents.
func (d *Documents) Aggregate(ctx context.Context, tenant, index string, q storage.Query, a storage.Aggregation) ([]storage.Bucket, error) {
	list, err := bounded(ctx, func(ctx context.Context) ([]storage.Bucket, error) { return d.aggregate(ctx, tenant, index, q, a) })
	if err != nil {
		return nil, d.closedOr(fmt.Errorf("aggregate %s: %w", index, err))
	}
	return list, nil
}

func (d *Documents) aggregate(ctx context.Context, tenant, index string, q storage.Query, a storage.Aggregation) ([]storage.Bucket, error) {
	by, of, err := a.Understand(index)
	if err != nil {
		return nil, err
	}
	if q.Vector != nil {
		return nil, errors.New("a vector selects no documents")
	}
	q.Sort, q.After, q.Limit = "", "", 0
	s, err := d.selection(ctx, tenant, index, q)
	if err != nil || s == nil {
		return nil, err
	}
	match, err := matchQuery(ctx, d.db.readers, q)
	if err != nil || q.Text != "" && match == "" {
		return nil, err
	}
	enter, err := s.narrowest(ctx, d.db.readers, enterLimit)
	if err != nil {
		return nil, err
	}
	return buckets(ctx, d.db.readers, s.counted(by, of, match, enter))
}

// counted groups what is selected and matches, by a field and with the values of another one, where
// they have a name. Documents are looked up by the filter enter, if that is not -1.
func (s *selection) counted(by, of storage.Field, match string, enter int) *statement {
	b := &statement{}
	b.add("SELECT key, count(*), count(n), total(n), coalesce(min(n), 0), coalesce(max(n), 0) FROM (SELECT ")
	if by.Name == "" {
		b.add("''")
	} else {
		b.add("k.value")
	}
	b.add(" AS key, ")
	if of.Name == "" {
		b.add("NULL")
	} else {
		b.add("d.body ->> ?", `$."`+of.Name+`"`)
	}
	b.add(" AS n FROM ")
	s.entered(b, enter)
	if by.Name != "" {
		b.add(" CROSS JOIN terms k INDEXED BY terms_row ON k.row = d.row AND k.member = (SELECT number FROM members WHERE name = ?)", memberOf(by))
	}
	b.add(" WHERE")
	s.visible(b)
	if match != "" {
		b.add(" AND d.row IN (SELECT rowid - ? FROM text WHERE", textRow(s.space, 0))
		s.matching(b, match)
		b.add(")")
	}
	s.filtered(b, "d.row", enter)
	b.add(") GROUP BY key ORDER BY key LIMIT ?", storage.MaxBuckets+1)
	return b
}

// entered adds the documents that a filter selects or, if it is -1, all of the space.
func (s *selection) entered(b *statement, by int) {
	if by < 0 {
		b.add("(SELECT * FROM documents WHERE space = ?) d", s.space)
		return
	}
	b.add("(SELECT DISTINCT row FROM terms WHERE ")
	s.filters[by].where(b, s.space)
	b.add(") e CROSS JOIN documents d ON d.row = e.row")
}

func buckets(ctx context.Context, db *sql.DB, b *statement) ([]storage.Bucket, error) {
	list, err := collect(ctx, db, func(rows *sql.Rows) (bucket storage.Bucket, err error) {
		err = rows.Scan(&bucket.Key, &bucket.Count, &bucket.Values, &bucket.Sum, &bucket.Min, &bucket.Max)
		if bucket.Values > 0 {
			bucket.Avg = bucket.Sum / float64(bucket.Values)
		}
		return bucket, err
	}, b.text.String(), b.args...)
	if len(list) > storage.MaxBuckets {
		return nil, fmt.Errorf("more than %d buckets: narrow the query", storage.MaxBuckets)
	}
	return list, err
}
