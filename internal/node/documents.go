package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"time"

	"aob.dev/writ/executors"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/embed"
	"aob.dev/writ/state"
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

// embedderWait is how long a start waits for an embedder.
const embedderWait = 3 * time.Second

// checkEmbedder has one text embedded: a model that is unknown, or gives vectors
// that the store does not take, is found before anything depends on it. One that
// does not answer keeps nothing from starting.
func (n *Node) checkEmbedder(ctx context.Context) error {
	e := n.cfg.Embedder
	if e == nil {
		return nil
	}
	if want := cmp.Or(n.cfg.Documents.Dimension, storage.DefaultDimension); e.Dimension() != want {
		return fmt.Errorf("embedder: %w", &embed.DimensionError{Got: e.Dimension(), Want: want})
	}
	wait, cancel := context.WithTimeout(ctx, embedderWait)
	defer cancel()
	_, err := e.Embed(wait, []string{"writ"})
	if errors.Is(err, embed.ErrUnavailable) || err != nil && wait.Err() != nil && ctx.Err() == nil {
		n.cfg.Log.WarnContext(ctx, "the embedder does not answer", slog.String("error", err.Error()))
		return nil
	}
	if err != nil {
		return fmt.Errorf("embedder: %w", err)
	}
	return nil
}

// fresh makes orders that search an index find what was written before them, also
// in a store whose searches lag behind: whoever was told that something is there
// finds it.
func (n *Node) fresh(handlers map[string]executors.Handler, searched map[string]string) map[string]executors.Handler {
	store, lags := n.documents.(storage.Refresher)
	if !lags {
		return handlers
	}
	out := maps.Clone(handlers)
	for typ, index := range searched {
		out[typ] = func(ctx context.Context, o *executors.Order) (*executors.Result, error) {
			if err := store.Refresh(ctx, index); err != nil {
				return nil, executors.Store(err)
			}
			return handlers[typ](ctx, o)
		}
	}
	return out
}

// remembering is a store for the recorder: what a retention may have removed is
// not made again, be it that the recorder goes over old records or is late.
type remembering struct {
	storage.Documents
	directory *state.State
	now       func() time.Time
}

// Project implements storage.Documents.
func (r remembering) Project(ctx context.Context, tenant, index string, p storage.Projection) error {
	before := r.directory.Removed(tenant, index, r.now())
	p.Put, p.Created = storage.Younger(index, p.Put, before), storage.Younger(index, p.Created, before)
	return r.Documents.Project(ctx, tenant, index, p)
}
