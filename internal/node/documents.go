package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/embed"
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
	// The node starts even if the server is down for now.
	if err := d.Migrate(ctx); !errors.Is(err, storage.ErrUnavailable) {
		return err
	}
	n.remote = d
	return nil
}

// migrateAfter is the pause before an OpenSearch that does not answer is asked again.
const migrateAfter = time.Second

// startDocuments retries an OpenSearch that did not answer.
func (n *Node) startDocuments(g *group) error {
	if n.remote != nil {
		g.run("documents", n.migrateDocuments)
	}
	return nil
}

// migrateDocuments migrates the indices of an OpenSearch as soon as it answers. An error
// of the migration ends the node, as it would at the start.
func (n *Node) migrateDocuments(ctx context.Context) error {
	for told := ""; ctx.Err() == nil; {
		err := n.remote.Migrate(ctx)
		if err == nil {
			<-ctx.Done()
			break
		}
		if !errors.Is(err, storage.ErrUnavailable) && ctx.Err() == nil {
			return err
		}
		if says := err.Error(); says != told && ctx.Err() == nil { // once, not at each try
			n.cfg.Log.WarnContext(ctx, "the store of documents does not answer; writ goes on asking", slog.String("error", says))
			told = says
		}
		_ = clock.Sleep(ctx, migrateAfter)
	}
	return nil
}

// embedderWait is how long a start waits for an embedder.
const embedderWait = 3 * time.Second

// checkEmbedder embeds one text, to find an unknown model, or vectors that the store does
// not accept, before anything depends on it. The node starts even if the embedder does not
// answer.
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

// expireEvery is how often the node looks for expired memories. No read returns them.
const expireEvery = 10 * time.Minute

// removeByAge is one round of expire.
func (n *Node) removeByAge(ctx context.Context) {
	now := n.cfg.Now()
	if c, blocked := n.blocked(); blocked { //nolint:contextcheck // the clock may not be right; it logs, and has no caller to wait for
		n.cfg.Log.WarnContext(ctx, "documents are not removed by age now", slog.String("condition", c.Name))
		return
	}
	expired, old, err := storage.RemoveAged(ctx, n.documents, n.directory, now)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		n.cfg.Log.WarnContext(ctx, "expired documents could not be removed", slog.String("error", err.Error()))
	}
	if expired+old > 0 {
		n.cfg.Log.InfoContext(ctx, "expired documents removed", slog.Int("expired", expired), slog.Int("old", old))
	}
}

// expire removes expired memories, and documents older than a retention, now and again
// and again until ctx ends. If the store is down, the next round tries again.
func (n *Node) expire(ctx context.Context) error {
	_ = clock.Every(ctx, expireEvery, func() bool { n.removeByAge(ctx); return false })
	return nil
}
