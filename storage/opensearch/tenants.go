package opensearch

import (
	"context"

	"aob.dev/writ/storage"
)

// Tenants are those that have documents in an index, for who looks at all of them.
func (d *Documents) Tenants(ctx context.Context, index string) ([]string, error) {
	list, err := d.walk(ctx, index, object{"match_all": object{}}, storage.Aggregation{By: "tenant_id"}, storage.Field{Kind: storage.Keyword})
	var out []string
	for _, b := range list {
		out = append(out, b.Key)
	}
	return out, err
}
