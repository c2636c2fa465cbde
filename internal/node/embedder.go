package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"aob.dev/writ/internal/embed"
	"aob.dev/writ/storage"
)

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
