package memory

import (
	"context"
	"strings"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/storage"
)

// NamesBlob reports whether a memory of a tenant names a blob. Expired memories do not count.
func NamesBlob(ctx context.Context, docs storage.Documents, tenant, digest string, now time.Time) (bool, error) {
	if r, lags := docs.(storage.Refresher); lags {
		if err := r.Refresh(ctx, storage.IndexMemory); err != nil {
			return false, err
		}
	}
	q := storage.Query{Text: strings.TrimPrefix(digest, "sha256:"), Limit: 1000, Now: intents.FormatTime(now)}
	for {
		page, err := docs.Search(ctx, tenant, storage.IndexMemory, q)
		if err != nil {
			return false, err
		}
		for _, doc := range page.Documents {
			if strings.Contains(string(doc.Body), "cas://"+digest) {
				return true, nil
			}
		}
		if q.After = page.Cursor; q.After == "" {
			return false, nil
		}
	}
}
