package opensearch

import (
	"context"
	"net/http"

	"aob.dev/writ/storage"
)

var _ storage.Refresher = (*Documents)(nil)

// Refresh makes what was written before visible; see storage.Refresher. It costs
// little where nothing was.
func (d *Documents) Refresh(ctx context.Context, indices ...string) error {
	return d.call(ctx, request{method: http.MethodPost, path: "/" + d.targets(indices) + "/_refresh", repeat: true}, nil)
}
