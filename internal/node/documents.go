package node

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/opensearch"
)

func (n *Node) openDocuments(ctx context.Context) (err error) {
	if n.documents, err = datadir.OpenDocuments(ctx, n.cfg.Dir, n.cfg.Documents, n.cfg.Limits.PageCache/2); err != nil {
		return err
	}
	d, remote := n.documents.(*opensearch.Documents)
	if !remote {
		return nil
	}
	// A server that is down for now keeps nothing from starting but what needs it.
	if err := d.Migrate(ctx); !errors.Is(err, storage.ErrUnavailable) {
		return err
	}
	n.remote = d
	return nil
}

// migrateAfter is how long an OpenSearch that does not answer is left alone.
const migrateAfter = time.Second

// migrateDocuments brings the indices of an OpenSearch in order, however long it
// does not answer. What it then refuses ends the node, as it would at the start.
func (n *Node) migrateDocuments(ctx context.Context) error {
	for ctx.Err() == nil {
		err := n.remote.Migrate(ctx)
		if err == nil {
			<-ctx.Done()
			break
		}
		if !errors.Is(err, storage.ErrUnavailable) && ctx.Err() == nil {
			return err
		}
		n.cfg.Log.WarnContext(ctx, "the store of documents does not answer", slog.String("error", err.Error()))
		select {
		case <-time.After(migrateAfter):
		case <-ctx.Done():
		}
	}
	return nil
}
