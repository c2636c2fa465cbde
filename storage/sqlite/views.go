package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
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
	viewBytes = 32 << 10 // of the rows that are given
	viewValue = 4 << 20  // bytes of the longest value that may be made
)

// Rows implements storage.Querier. The statement runs in a database of its own, in memory,
// that has the views as tables, is gone afterwards, and cannot attach a file. One SELECT
// is carried out, since it is read as a part of another.
func (d *Documents) Rows(ctx context.Context, views []storage.View, statement string) (rows []map[string]any, more bool, err error) {
	statement = strings.TrimRight(statement, "; \t\r\n")
	if strings.Contains(statement, ";") {
		return nil, false, &storage.StatementError{Reason: "one SELECT, without a semicolon"}
	}
	ctx, cancel := context.WithTimeout(ctx, viewTime)
	defer cancel()
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return nil, false, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	c, err := db.Conn(ctx)
	if err != nil {
		return nil, false, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	for _, v := range views {
		if err := fillView(ctx, c, v); err != nil {
			return nil, false, err
		}
	}
	for id, limit := range map[int]int{sqlite3.SQLITE_LIMIT_ATTACHED: 0, sqlite3.SQLITE_LIMIT_LENGTH: viewValue} {
		if _, err := sqlite.Limit(c, id, limit); err != nil {
			return nil, false, err
		}
	}
	if _, err := c.ExecContext(ctx, "PRAGMA query_only = 1"); err != nil {
		return nil, false, err
	}
	found, err := c.QueryContext(ctx, fmt.Sprintf("SELECT * FROM (%s\n) LIMIT %d", statement, viewRows+1))
	if err == nil {
		rows, more, err = rowsOf(found)
	}
	var wrong *sqlite.Error
	switch {
	case ctx.Err() != nil:
		err = &storage.StatementError{Reason: "it takes too long"}
	case errors.As(err, &wrong):
		err = &storage.StatementError{Reason: wrong.Error()}
	}
	return rows, more, err
}

// fillView makes the table of a view, with every member that is no vector as a column.
func fillView(ctx context.Context, c *sql.Conn, v storage.View) error {
	fields, err := storage.Fields(v.Index)
	if err != nil {
		return err
	}
	fields = slices.DeleteFunc(slices.Clone(fields), func(f storage.Field) bool { return f.Kind == storage.Dense })
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = `"` + f.Name + `"`
	}
	if _, err := c.ExecContext(ctx, fmt.Sprintf("CREATE TABLE %s(%s)", v.Name, strings.Join(names, ", "))); err != nil {
		return err
	}
	insert := fmt.Sprintf("INSERT INTO %s VALUES (?%s)", v.Name, strings.Repeat(", ?", len(fields)-1))
	for _, doc := range v.Documents {
		var members map[string]any
		if err := json.Unmarshal(doc.Body, &members); err != nil {
			return err
		}
		values := make([]any, len(fields))
		for i, f := range fields {
			values[i] = members[f.Name]
			switch values[i].(type) {
			case map[string]any, []any:
				text, err := json.Marshal(values[i])
				if err != nil {
					return err
				}
				values[i] = string(text)
			}
		}
		if _, err := c.ExecContext(ctx, insert, values...); err != nil {
			return err
		}
	}
	return nil
}

// rowsOf are the rows of an answer, as far as they are given.
func rowsOf(found *sql.Rows) (rows []map[string]any, more bool, err error) {
	defer func() { err = errors.Join(err, found.Close()) }()
	columns, err := found.Columns()
	if err != nil {
		return nil, false, err
	}
	rows = []map[string]any{}
	for size := 0; found.Next(); {
		values, at := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			at[i] = &values[i]
		}
		if err := found.Scan(at...); err != nil {
			return nil, false, err
		}
		row := make(map[string]any, len(columns))
		for i, name := range columns {
			row[name] = values[i]
		}
		text, err := json.Marshal(row) // a number that JSON has not, say
		if err != nil {
			return nil, false, &storage.StatementError{Reason: err.Error()}
		}
		if size += len(text); len(rows) == viewRows || size > viewBytes {
			return rows, true, nil
		}
		rows = append(rows, row)
	}
	return rows, false, found.Err()
}
