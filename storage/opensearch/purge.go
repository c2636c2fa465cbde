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
	total, met := 0, 0
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
		did, err := d.bulk(ctx, index, &b)
		if total += did.done; err != nil {
			return total, fmt.Errorf("purge %s: %w", index, err)
		}
		if _, months := storage.Appended[index]; len(did.gone) > 0 && !months {
			// They stand in the index that is now in force: search again.
			if met++; met == attempts {
				return total, fmt.Errorf("purge %s: %w", index, errGone)
			}
			if err := waitBefore(ctx, met); err != nil {
				return total, err
			}
			continue
		}
		if cursor == "" {
			return total, nil
		}
		q.After = cursor
	}
}
