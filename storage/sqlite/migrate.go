package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

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
