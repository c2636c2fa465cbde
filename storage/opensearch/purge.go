package opensearch

import (
	"context"
	"errors"
	"fmt"

	"aob.dev/writ/storage"
)

// purgePage is how many documents are removed at a time.
const purgePage = 500

// Purge removes what a query selects; see storage.Documents. Each document is
// removed as it was found: one that was written since stays.
func (d *Documents) Purge(ctx context.Context, tenant, index string, q storage.Query) (int, error) {
	if q.Vector != nil {
		return 0, errors.New("purge: a vector selects no documents")
	}
	_, months := storage.Appended[index]
	total := 0
	for q.Limit = purgePage; ; {
		hits, cursor, err := d.search(ctx, tenant, index, q)
		if err != nil {
			return total, fmt.Errorf("purge %s: %w", index, err)
		}
		var b bulk
		for _, hit := range hits {
			err := b.add("delete", object{"_index": hit.Index, "_id": hit.Key, "if_seq_no": hit.SeqNo, "if_primary_term": hit.Term}, nil)
			if err != nil {
				return total, err
			}
		}
		done, _, err := d.bulk(ctx, index, &b)
		total += done
		if err != nil && !(months && isIndexNotFound(err)) { // a month that was removed meanwhile has none
			return total, fmt.Errorf("purge %s: %w", index, err)
		}
		if cursor == "" {
			return total, nil
		}
		q.After = cursor
	}
}
