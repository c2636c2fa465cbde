package monitor

import (
	"context"
	"time"
)

// Read counts the whole of a period at once.
func Read(ctx context.Context, docs Documents, tenants []string, since, until time.Time) (Figures, error) {
	var list []slice
	for _, tenant := range tenants {
		s, err := readSlice(ctx, docs, tenant, since, until)
		if err != nil {
			return Figures{}, err
		}
		list = append(list, s)
	}
	return figuresOf(since, until, list), nil
}
