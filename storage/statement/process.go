package statement

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"

	"golang.org/x/sys/unix"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// processName is the name that the program has in the process that carries a statement out.
const processName = "writ-select"

// init: in the process of a SELECT nothing else of the program starts.
func init() {
	if os.Args[0] == processName {
		sqlite.MustRegisterDeterministicScalarFunction("left", 2, left)
		os.Exit(selectOnce(os.Stdin, os.Stdout))
	}
}

// selectOnce carries one statement out. Its errors are in the answer.
func selectOnce(in io.Reader, out io.Writer) int {
	for limit, most := range map[int]uint64{unix.RLIMIT_DATA: viewMemory, unix.RLIMIT_CORE: 0, unix.RLIMIT_FSIZE: 0} {
		if err := unix.Setrlimit(limit, &unix.Rlimit{Cur: most, Max: most}); err != nil {
			return 1
		}
	}
	debug.SetMemoryLimit(viewMemory / 2)
	var q selecting
	if err := json.NewDecoder(in).Decode(&q); err != nil {
		return 1
	}
	var a viewResult
	rows, err := q.rows(context.Background())
	if a.Rows = rows; err != nil {
		a = viewResult{Error: err.Error()}
	}
	if err := json.NewEncoder(out).Encode(a); err != nil {
		return 1
	}
	return 0
}

// rows runs the statement in a database in memory that has the views. It can attach no file;
// it is read as a part of another SELECT, so it is one.
func (in selecting) rows(ctx context.Context) ([]map[string]any, error) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return nil, err
	}
	c, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	for _, v := range in.Views {
		if err := v.fill(ctx, c); err != nil {
			return nil, err
		}
	}
	if _, err := c.ExecContext(ctx, "PRAGMA temp_store = MEMORY"); err != nil {
		return nil, err
	}
	if err := soon(); err != nil {
		return nil, err
	}
	for id, limit := range map[int]int{
		sqlite3.SQLITE_LIMIT_ATTACHED: 0, sqlite3.SQLITE_LIMIT_LENGTH: viewValue, sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: viewPattern,
	} {
		if _, err := sqlite.Limit(c, id, limit); err != nil {
			return nil, err
		}
	}
	found, err := c.QueryContext(ctx, fmt.Sprintf("SELECT * FROM (%s\n) LIMIT %d", in.Statement, viewRows))
	if err != nil {
		return nil, err
	}
	return scanned(found)
}

// left is LEFT(text, n) of PostgreSQL: the first n characters, or all but the last -n.
func left(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
	if args[0] == nil || args[1] == nil {
		return nil, nil
	}
	n, ok := args[1].(int64)
	if !ok {
		return nil, errors.New("LEFT takes a text and a number")
	}
	text := []rune(fmt.Sprint(args[0]))
	if n < 0 {
		n = max(0, int64(len(text))+n)
	}
	return string(text[:min(n, int64(len(text)))]), nil
}

// soon has the process killed when it has used so much of the processor from now on.
func soon() error {
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		return err
	}
	most := uint64(used.Utime.Sec+used.Stime.Sec) + 1 + viewCPU //nolint:gosec // G115: of a process that has just begun
	return unix.Setrlimit(unix.RLIMIT_CPU, &unix.Rlimit{Cur: most, Max: most})
}

// scanned reads the rows, as far as they may be large.
func scanned(found *sql.Rows) (rows []map[string]any, err error) {
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

// fill makes the view.
func (v view) fill(ctx context.Context, c *sql.Conn) error {
	var columns []string
	for _, name := range v.Columns {
		columns = append(columns, fmt.Sprintf(`body->>'$.%s' AS %q`, name, name))
	}
	if _, err := c.ExecContext(ctx, fmt.Sprintf("CREATE TABLE %[1]s_rows(body); CREATE VIEW %[1]s AS SELECT %[2]s FROM %[1]s_rows; BEGIN", v.Name, strings.Join(columns, ", "))); err != nil {
		return err
	}
	insert, err := c.PrepareContext(ctx, fmt.Sprintf("INSERT INTO %s_rows VALUES (?)", v.Name))
	if err != nil {
		return err
	}
	for _, body := range v.Rows {
		if _, err := insert.ExecContext(ctx, string(body)); err != nil {
			return err
		}
	}
	if err := insert.Close(); err != nil {
		return err
	}
	_, err = c.ExecContext(ctx, "COMMIT")
	return err
}
