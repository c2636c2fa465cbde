package blobnats

import (
	"context"
	"math"

	"aob.dev/writ/storage"
)

// Held is how many bytes of blobs a tenant has.
func (b *Blobs) Held(ctx context.Context, tenant string) (int64, error) {
	under, err := storage.TenantName(tenant)
	if err != nil {
		return 0, err
	}
	list, err := b.kept.list(ctx, under+"/")
	sum := int64(0)
	for _, o := range list {
		sum += int64(min(o.Size, math.MaxInt64))
	}
	return sum, err
}
