package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"time"

	"aob.dev/writ/cell"
	"aob.dev/writ/gateway"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/embed"
	"aob.dev/writ/router"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/ledger"
	"aob.dev/writ/storage/opensearch"
	"aob.dev/writ/storage/quota"
	"aob.dev/writ/storage/sqlite"
)

// DefaultTenantDisk is the number of bytes that one tenant may store.
const DefaultTenantDisk = 10 << 30

// bounded blobs leave room for intents and for other tenants. Uploads stop at twice the free disk
// minimum for intents.
func (n *Node) bounded(of quota.Store) *quota.Blobs {
	l := quota.Limits{
		Free:  func() (int64, error) { return sqlite.Free(n.cfg.Dir) },
		Floor: 2 * cmp.Or(n.cfg.Limits.FreeFloor, sqlite.DefaultFreeFloor), Tenant: cmp.Or(n.cfg.Limits.TenantDisk, DefaultTenantDisk),
		Exempt: ledger.SystemTenant,
	}
	return quota.New(of, l)
}

func (n *Node) openBlobs(ctx context.Context) error {
	at, err := n.cfg.Blobs.Place(n.cfg.Dir)
	if err != nil {
		return err
	}
	held, err := datadir.PlaceOf(n.cfg.Dir)
	if err != nil {
		return err
	}
	opened, err := at.Open(ctx, n.cfg.Dir)
	if err != nil {
		return err
	}
	n.blobs = n.bounded(opened)
	if at == held {
		return nil
	}
	return at.Remember(n.cfg.Dir)
}

// links is the key of links to artifacts. The executor makes them and the gateway opens
// them.
func (n *Node) links() (gateway.Links, error) {
	if !n.standalone() {
		key, err := cell.Secret(n.cfg.Cluster.Keys, cell.Links)
		return gateway.Links{Key: key}, err
	}
	secret, err := ledger.CreateSecret(datadir.Tags(n.cfg.Dir))
	if err != nil {
		return gateway.Links{}, err
	}
	key, err := gateway.LinkKey(secret)
	return gateway.Links{Key: key}, err
}

// nodeBlobs is the node's blobs as the gateway uses them.
type nodeBlobs struct{ *quota.Blobs }

// Room implements gateway.Artifacts. An artifact is there twice for a moment: as it was
// received, and in its final place.
func (k nodeBlobs) Room(ctx context.Context, tenant string, bytes int64) error {
	return roomOf(k.Blobs.Room(ctx, tenant, 2*bytes))
}

// Receive implements gateway.Artifacts: as a temporary file of the turn.
func (k nodeBlobs) Receive(ctx context.Context, tenant, turn string, r io.Reader) (string, error) {
	f, err := k.Put(ctx, storage.TurnScope(tenant, turn), r)
	return f.ID, roomOf(err)
}

// roomOf is the gateway's error for a blob that has no room.
func roomOf(err error) error {
	switch {
	case errors.Is(err, storage.ErrQuota):
		return gateway.ErrQuota
	case errors.Is(err, storage.ErrFull):
		return gateway.ErrNoRoom
	}
	return err
}

// Forget implements gateway.Artifacts.
func (k nodeBlobs) Forget(ctx context.Context, tenant, turn string) error {
	return k.Wipe(ctx, storage.TurnScope(tenant, turn))
}

// Fetch implements gateway.Artifacts.
func (k nodeBlobs) Fetch(ctx context.Context, tenant, ref string) (io.ReadCloser, int64, error) {
	r, size, err := k.Blobs.Fetch(ctx, tenant, ref)
	if errors.Is(err, storage.ErrNotFound) {
		err = gateway.ErrNoArtifact
	}
	return r, size, err
}

// Open implements gateway.Artifacts.
func (k nodeBlobs) Open(ctx context.Context, tenant string, f catalog.ContentFile) (io.ReadCloser, error) {
	r, _, err := k.Blobs.Open(ctx, storage.Scope{Tenant: tenant, Plan: f.Plan, Revision: f.Revision, Step: f.Step}, f.FileID)
	if errors.Is(err, storage.ErrNotFound) {
		err = gateway.ErrNoArtifact
	}
	return r, err
}

// holdingsFile is the index of which tenants have which blobs. It is rebuilt if it is missing.
func holdingsFile(data string) string { return filepath.Join(data, "holdings.db") }

func (n *Node) openHoldings(ctx context.Context) error {
	store, err := sqlite.OpenHoldings(ctx, holdingsFile(n.cfg.Dir))
	if err != nil {
		return err
	}
	n.holdingStore = store
	n.holdings = router.NewHoldings(n.journal, store, n.cfg.Log)
	n.followers.Add(n.holdings.Progress)
	return nil
}

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
			n.cfg.Log.WarnContext(ctx, "the store of documents does not answer; writ keeps asking", slog.String("error", says))
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
	return clock.Loop(ctx, expireEvery, func() { n.removeByAge(ctx) })
}
