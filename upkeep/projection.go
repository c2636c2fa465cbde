package upkeep

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/router/recorder"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/sqlite"
)

// projections are the indices that the recorder alone writes.
var projections = []string{storage.IndexPlans, storage.IndexEvents, storage.IndexSkillCalls, storage.IndexSchemas, storage.IndexIntents}

// projection is everything that the recorder makes from a journal, including what was removed by
// age, in a directory that Close removes.
type projection struct {
	*sqlite.Documents
	state       *state.State // of that journal
	unprojected []int64      // positions of the records of which something cannot be projected
	dir         string
}

// project makes the projection of the whole journal of a directory.
func project(ctx context.Context, dir string, records storage.Records) (p *projection, err error) {
	p = &projection{}
	if p.dir, err = os.MkdirTemp("", "writ-project-"); err != nil {
		return nil, err
	}
	if p.Documents, err = sqlite.OpenBareDocuments(ctx, filepath.Join(p.dir, "ours"), storage.NewCheck(storage.DefaultDimension)); err != nil {
		return nil, errors.Join(err, os.RemoveAll(p.dir))
	}
	if err = p.record(ctx, dir, records); err != nil {
		return nil, errors.Join(fmt.Errorf("the journal cannot be projected: %w", err), p.Close())
	}
	return p, nil
}

// record runs the recorder over all records.
func (p *projection) record(ctx context.Context, dir string, records storage.Records) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := recorder.New(records, p, slog.New(slog.DiscardHandler))
	r.Content = datadir.SystemBlob(dir)
	ended := make(chan error, 1)
	go func() {
		ended <- r.Run(ctx)
		cancel() // if it ended by itself, nothing more is reached
	}()
	reached := r.Reach(ctx, records.Next())
	cancel()
	if err := <-ended; err != nil {
		return err
	}
	p.unprojected, p.state = r.SetAside(), r.State()
	return reached
}

// beside opens a copy of a database of documents, of which nothing but documents is needed.
func (p *projection) beside(ctx context.Context, path string) (*sqlite.Documents, error) {
	to := filepath.Join(p.dir, "theirs")
	c, err := sqlite.CopyDocuments(ctx, path, to)
	if err != nil {
		return nil, err
	}
	if _, err := c.Begin(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	if err := c.Finish(ctx); err != nil {
		return nil, err
	}
	return sqlite.OpenBareDocuments(ctx, to, storage.NewCheck(storage.DefaultDimension))
}

// Close removes the projection.
func (p *projection) Close() error { return errors.Join(p.Documents.Close(), os.RemoveAll(p.dir)) }

// documentsOf returns the documents of an index, by id.
func documentsOf(ctx context.Context, d storage.Documents, tenant, index string) (map[string]storage.Document, error) {
	out := map[string]storage.Document{}
	err := eachPage(ctx, d, tenant, index, func(docs []storage.Document) error {
		for _, doc := range docs {
			out[doc.ID] = doc
		}
		return nil
	})
	return out, err
}
