package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"aob.dev/writ/storage"
)

// Bounds of a statement.
const (
	viewTime  = 2 * time.Second
	viewRows  = 100
	viewValue = 1 << 20 // bytes of the longest value that may be made
	viewBytes = 4 << 20 // of all values together
)

// Rows carries one SELECT out over the documents that queries select, by index. A view has
// the name of its index without agent_, and the members as columns. The statement runs in a
// database of its own, in memory, which is gone afterwards and can attach no file; it is
// read as a part of another SELECT, so it is one. An error is for who wrote it.
func (d *Documents) Rows(ctx context.Context, tenant string, views map[string]storage.Query, statement string) (rows []map[string]any, err error) {
	if strings.Contains(statement, ";") {
		return nil, errors.New("one SELECT, without a semicolon")
	}
	ctx, cancel := context.WithTimeout(ctx, viewTime)
	defer cancel()
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	c, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	for index, q := range views {
		if err := d.fillView(ctx, c, tenant, index, q); err != nil {
			return nil, err
		}
	}
	for id, limit := range map[int]int{sqlite3.SQLITE_LIMIT_ATTACHED: 0, sqlite3.SQLITE_LIMIT_LENGTH: viewValue} {
		if _, err := sqlite.Limit(c, id, limit); err != nil {
			return nil, err
		}
	}
	found, err := c.QueryContext(ctx, fmt.Sprintf("SELECT * FROM (%s\n) LIMIT %d", statement, viewRows))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, found.Close()) }()
	columns, err := found.Columns()
	size := 0
	for rows = []map[string]any{}; err == nil && found.Next(); {
		values, at, row := make([]any, len(columns)), make([]any, len(columns)), map[string]any{}
		for i := range values {
			at[i] = &values[i]
		}
		err = found.Scan(at...)
		for i, name := range columns {
			row[name] = values[i]
			switch v := values[i].(type) {
			case string:
				size += len(v)
			case []byte:
				size += len(v)
			}
		}
		if rows = append(rows, row); size > viewBytes {
			return nil, fmt.Errorf("the rows have more than %d bytes together", viewBytes)
		}
	}
	return rows, errors.Join(err, found.Err())
}

// fillView copies documents, and makes a view of their members but vectors.
func (d *Documents) fillView(ctx context.Context, c *sql.Conn, tenant, index string, q storage.Query) error {
	page, err := d.Search(ctx, tenant, index, q)
	if err != nil {
		return err
	}
	fields, err := storage.Fields(index)
	if err != nil {
		return err
	}
	var columns []string
	for _, f := range fields {
		if f.Kind != storage.Dense {
			columns = append(columns, fmt.Sprintf(`body->>'$.%s' AS %q`, f.Name, f.Name))
		}
	}
	name := strings.TrimPrefix(index, "agent_")
	if _, err := c.ExecContext(ctx, fmt.Sprintf("CREATE TABLE %[1]s_rows(body); CREATE VIEW %[1]s AS SELECT %[2]s FROM %[1]s_rows", name, strings.Join(columns, ", "))); err != nil {
		return err
	}
	insert := fmt.Sprintf("INSERT INTO %s_rows VALUES (?)", name) //nolint:gosec // G201: the name of an index, which Search has found
	for _, doc := range page.Documents {
		if _, err := c.ExecContext(ctx, insert, string(doc.Body)); err != nil {
			return err
		}
	}
	return nil
}
