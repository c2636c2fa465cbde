package opensearch

import (
	"context"
	"net/http"
	"strings"

	"aob.dev/writ/storage"
)

var _ storage.Refresher = (*Documents)(nil)

// Refresh makes what was written before visible; see storage.Refresher. It costs
// little where nothing was.
func (d *Documents) Refresh(ctx context.Context, indices ...string) error {
	targets := make([]string, len(indices))
	for i, index := range indices {
		targets[i] = d.target(index)
	}
	return d.call(ctx, request{method: http.MethodPost, path: "/" + strings.Join(targets, ",") + "/_refresh", repeat: true}, nil)
}
