package node

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"time"

	"aob.dev/writ/storage"
	"aob.dev/writ/storage/opensearch"
	"aob.dev/writ/storage/sqlite"
)

// Documents says where documents are: in the OpenSearch at its URL; without one in
// the data directory. The check is the node's.
type Documents = opensearch.Config

// documents is a store and what the node does with it besides.
type documents interface {
	storage.Documents
	Close() error
}

func (n *Node) openDocuments(ctx context.Context) error {
	cfg := n.cfg.Documents
	cfg.Check = storage.NewCheck(cmp.Or(cfg.Dimension, storage.DefaultDimension))
	if cfg.URL == "" {
		d, err := sqlite.OpenDocumentsWithin(ctx, filepath.Join(n.cfg.Dir, "documents.db"), cfg.Check, n.cfg.Limits.PageCache/2)
		if err != nil {
			return err
		}
		n.documents = d
		return sameDimension(ctx, d, cmp.Or(cfg.Dimension, storage.DefaultDimension))
	}
	d, err := opensearch.Open(cfg)
	if err != nil {
		return err
	}
	n.documents = d
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
