package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// Dimension is how many numbers each stored vector has; 0: there are no vectors.
// All have one size, since the store checks each write.
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
