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
var projections = []string{storage.IndexPlans, storage.IndexEvents, storage.IndexSkillCalls, storage.IndexSchemas, storage.IndexOrders}

// projection is all that the recorder makes of a journal, what was removed by age
// too, in a directory that Close removes.
type projection struct {
	*sqlite.Documents
	fold  *state.State // of that journal
	aside []int64      // positions of the records of which something cannot be projected
	dir   string
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

// record has the recorder go over all records.
func (p *projection) record(ctx context.Context, dir string, records storage.Records) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := recorder.New(records, p, slog.New(slog.DiscardHandler))
	r.Content = datadir.SystemBlob(dir)
	ended := make(chan error, 1)
	go func() {
		ended <- r.Run(ctx)
		cancel() // where it ended by itself, nothing more is reached
	}()
	reached := r.Reach(ctx, records.Next())
	cancel()
	if err := <-ended; err != nil {
		return err
	}
	p.aside, p.fold = r.SetAside(), r.State()
	return reached
}

// beside opens a copy of a database of documents, as it was at one moment.
func (p *projection) beside(ctx context.Context, path string) (*sqlite.Documents, error) {
	s, err := sqlite.OpenSnapshot(ctx, path)
	if err != nil {
		return nil, err
	}
	to := filepath.Join(p.dir, "theirs")
	if err := errors.Join(s.CopyTo(ctx, to), s.Close()); err != nil {
		return nil, err
	}
	return sqlite.OpenDocuments(ctx, to, storage.NewCheck(storage.DefaultDimension))
}

// Close removes what was made.
func (p *projection) Close() error { return errors.Join(p.Documents.Close(), os.RemoveAll(p.dir)) }

// documentsOf an index, by id.
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
