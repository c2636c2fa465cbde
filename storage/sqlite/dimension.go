package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// Dimension is how many numbers the vectors have that are stored; 0: there are
// none. They have one size, as every write is held to that of the store.
func (d *Documents) Dimension(ctx context.Context) (int, error) {
	var size int
	err := d.db.readers.QueryRowContext(ctx, "SELECT length(value) FROM vectors LIMIT 1").Scan(&size)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("dimension: %w", err)
	}
	return size / 4, nil
}
