package node

import (
	"context"
	"path/filepath"
	"strings"

	"aob.dev/writ/intents"
	"aob.dev/writ/router"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/sqlite"
)

// holdingsFile is the index of who holds which blobs. It is made again where it is
// missing.
func holdingsFile(data string) string { return filepath.Join(data, "holdings.db") }

func (n *Node) openHoldings(ctx context.Context) error {
	store, err := sqlite.OpenHoldings(ctx, holdingsFile(n.cfg.Dir))
	if err != nil {
		return err
	}
	n.holdingStore = store
	n.holdings = router.NewHoldings(n.journal, store, n.cfg.Log)
	return nil
}

// remembered says whether a memory of a tenant holds a blob. Those that have
// expired hold nothing.
func (n *Node) remembered(ctx context.Context, tenant, digest string) (bool, error) {
	if r, lags := n.documents.(storage.Refresher); lags {
		if err := r.Refresh(ctx, storage.IndexMemory); err != nil {
			return false, err
		}
	}
	q := storage.Query{Text: strings.TrimPrefix(digest, "sha256:"), Limit: 1000, Now: intents.FormatTime(n.cfg.Now())}
	for {
		page, err := n.documents.Search(ctx, tenant, storage.IndexMemory, q)
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
