package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"modernc.org/sqlite" // registers the driver
	sqlite3 "modernc.org/sqlite/lib"

	"aob.dev/writ/internal/durable"
)

// pageSize is in bytes. A record of 2.5 KB fills a page of 4 KB alone; with 16 KB
// pages a group of records shares them.
const pageSize = 16384

// DefaultCache bounds the page caches of a database's connections together, in bytes.
const DefaultCache = 64 << 20

// caches are the page caches of a database's connections, in KiB each. The writer gets
// half of the bound; the checkpointer needs little.
type caches struct{ writer, ckpt, reader int64 }

func shareCache(bound int64, readers int) caches {
	if bound <= 0 {
		bound = DefaultCache
	}
	kib := bound >> 10
	return caches{writer: kib / 2, ckpt: kib / 16, reader: max((kib-kib/2-kib/16)/int64(readers), 1)}
}

// database is one file with the connections that use it. Connections have fixed
// roles, because a prepared statement and a page cache belong to one connection.
type database struct {
	path    string
	pool    *sql.DB              // owns writer and checkpoints
	writer  *sql.Conn            // used by the writer goroutine only
	kept    map[string]*sql.Stmt // likewise: its prepared statements, by their text
	ckpt    *sql.Conn            // used by the checkpointer only
	readers *sql.DB              // everyone else; refuse to write
}

// connect opens or creates the file and brings its tables to the newest version.
func connect(ctx context.Context, path string, readers int, cache int64, steps []string) (*database, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if err := create(path); err != nil {
		return nil, err
	}
	d := &database{path: path, kept: make(map[string]*sql.Stmt)}
	if d.pool, err = sql.Open("sqlite", dsn(path)); err != nil {
		return nil, err
	}
	d.pool.SetMaxOpenConns(2)
	share := shareCache(cache, readers)
	if err := d.start(ctx, share, steps); err != nil {
		return nil, errors.Join(err, d.close())
	}
	if d.readers, err = sql.Open("sqlite", dsn(path, "busy_timeout(5000)", "query_only(1)", fmt.Sprintf("cache_size(%d)", -share.reader))); err != nil {
		return nil, errors.Join(err, d.close())
	}
	d.readers.SetMaxOpenConns(readers)
	d.readers.SetMaxIdleConns(readers)
	return d, nil
}

func (d *database) start(ctx context.Context, share caches, steps []string) (err error) {
	if d.writer, err = d.pool.Conn(ctx); err != nil {
		return err
	}
	if err := setPragmas(ctx, d.writer, share.writer); err != nil {
		return err
	}
	if err := migrate(ctx, d.writer, steps); err != nil {
		return err
	}
	if d.ckpt, err = d.pool.Conn(ctx); err != nil {
		return err
	}
	return setPragmas(ctx, d.ckpt, share.ckpt)
}

// close closes every connection. The last one checkpoints and removes the
// write-ahead log.
func (d *database) close() error {
	var errs []error
	if d.readers != nil {
		errs = append(errs, d.readers.Close())
	}
	if d.ckpt != nil {
		errs = append(errs, d.ckpt.Close())
	}
	for _, s := range d.kept {
		errs = append(errs, s.Close())
	}
	if d.writer != nil {
		errs = append(errs, d.writer.Close())
	}
	return errors.Join(append(errs, d.pool.Close())...)
}

// create creates an empty file that only its owner reads; SQLite gives the files
// beside it the same mode. The directory is synced so that a power cut right
// after does not lose the name.
func create(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) //nolint:gosec // G304: the path is made of the data directory
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return durable.SyncDir(filepath.Dir(path))
}

func dsn(path string, pragmas ...string) string {
	return (&url.URL{Scheme: "file", Path: path, RawQuery: url.Values{"_pragma": pragmas}.Encode()}).String()
}

// readOnly opens a file that another process may write to, unless how says otherwise.
func readOnly(path, how string) (*sql.DB, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	return sql.Open("sqlite", dsn(path, "busy_timeout(5000)", "query_only(1)")+"&mode=ro"+how)
}

// setPragmas runs the pragmas in order and reads each back: page_size must come
// before journal_mode, and given in the file name it had no effect.
func setPragmas(ctx context.Context, c *sql.Conn, cacheKiB int64) error {
	for _, p := range []struct{ name, set, want string }{
		{"busy_timeout", strconv.FormatInt(usualWait.Milliseconds(), 10), strconv.FormatInt(usualWait.Milliseconds(), 10)},
		{"page_size", strconv.Itoa(pageSize), strconv.Itoa(pageSize)},
		{"journal_mode", "wal", "wal"},
		{"synchronous", "full", "2"},
		{"wal_autocheckpoint", "0", "0"},
		{"journal_size_limit", strconv.Itoa(restartFrames * pageSize), strconv.Itoa(restartFrames * pageSize)},
		{"cache_size", strconv.FormatInt(-cacheKiB, 10), strconv.FormatInt(-cacheKiB, 10)},
	} {
		if _, err := c.ExecContext(ctx, "PRAGMA "+p.name+"="+p.set); err != nil {
			return fmt.Errorf("set %s: %w", p.name, err)
		}
		var got string
		if err := c.QueryRowContext(ctx, "PRAGMA "+p.name).Scan(&got); err != nil {
			return fmt.Errorf("read %s: %w", p.name, err)
		}
		if got != p.want {
			return fmt.Errorf("%s is %q, not %q", p.name, got, p.want)
		}
	}
	return nil
}

// statement prepares a statement of the writer, once.
func (d *database) statement(ctx context.Context, text string) (*sql.Stmt, error) {
	if s := d.kept[text]; s != nil {
		return s, nil
	}
	s, err := d.writer.PrepareContext(ctx, text)
	if err != nil {
		return nil, fmt.Errorf("prepare %s: %w", text, err)
	}
	d.kept[text] = s
	return s, nil
}

// exec runs a statement of the writer.
func (d *database) exec(ctx context.Context, text string, args ...any) (sql.Result, error) {
	s, err := d.statement(ctx, text)
	if err != nil {
		return nil, err
	}
	return s.ExecContext(ctx, args...)
}

// transact runs fn in one transaction of the writer. COMMIT returns after the sync.
func (d *database) transact(ctx context.Context, fn func() error) error {
	_, err := d.exec(ctx, "BEGIN IMMEDIATE")
	if err != nil {
		err = fmt.Errorf("begin: %w", err)
	} else if err = fn(); err == nil {
		if _, err = d.exec(ctx, "COMMIT"); err != nil {
			err = fmt.Errorf("commit: %w", err)
		}
	}
	if err != nil {
		// SQLite may have rolled back by itself, and then this fails. If a transaction
		// is left open, the next BEGIN fails.
		_, _ = d.exec(ctx, "ROLLBACK")
	}
	return err
}

// collect scans every row of a query, and closes the rows.
func collect[T any](ctx context.Context, db interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}, scan func(*sql.Rows) (T, error), query string, args ...any,
) (list []T, err error) {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		one, err := scan(rows)
		if err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	return list, rows.Err()
}

// primary is SQLite's result code without its extension, 0 for other errors.
func primary(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code() & 0xff
	}
	return 0
}

func isFull(err error) bool {
	return primary(err) == sqlite3.SQLITE_FULL || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// isBusy reports that another connection holds a lock for now.
func isBusy(err error) bool {
	c := primary(err)
	return c == sqlite3.SQLITE_BUSY || c == sqlite3.SQLITE_LOCKED
}

// migrate brings a database to version len(steps); step i leads from version i
// to i+1. Each step is one transaction with its version number, so a crash
// leaves a whole version. It only goes forward: a file written by a newer
// program is refused.
func migrate(ctx context.Context, c *sql.Conn, steps []string) error {
	var version int
	if err := c.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return fmt.Errorf("read schema version: %w", err)
	}
	if version > len(steps) {
		return fmt.Errorf("the file has schema version %d, this program knows up to %d: use a newer one", version, len(steps))
	}
	for ; version < len(steps); version++ {
		script := fmt.Sprintf("BEGIN IMMEDIATE; %s; PRAGMA user_version=%d; COMMIT", steps[version], version+1)
		if _, err := c.ExecContext(ctx, script); err != nil {
			_, undo := c.ExecContext(ctx, "ROLLBACK")
			return fmt.Errorf("migrate to schema version %d: %w", version+1, errors.Join(err, undo))
		}
	}
	return nil
}
