package upkeep

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/router/recorder"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/sqlite"
)

// ErrNoProjection says that an index is not made from the journal.
var ErrNoProjection = errors.New("cannot be rebuilt from the journal: name one of " + strings.Join(projections, ", ") + "; or --search for what searches go by")

// Reindex drops the documents of a projection and makes them again from the journal, while no node
// uses the directory. It returns how many were removed and made. What a retention has removed stays
// removed.
//
// Crash: some documents are missing, and running the command again makes them.
func Reindex(ctx context.Context, dir string, at datadir.DocumentsAt, index string) (removed, made int, err error) {
	if !slices.Contains(projections, index) {
		return 0, 0, fmt.Errorf("%s %w", index, ErrNoProjection)
	}
	h, err := hold(ctx, dir)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	docs, err := openDocuments(ctx, dir, at)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, docs.Close()) }()
	ours, err := project(ctx, dir, h.records)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, ours.Close()) }()
	for _, tenant := range h.state.Tenants() {
		gone, err := docs.Purge(ctx, tenant, index, storage.Query{})
		if removed += gone; err != nil {
			return removed, made, err
		}
		again, err := documentsOf(ctx, ours, tenant, index)
		if err != nil {
			return removed, made, err
		}
		list := storage.Younger(index, inOrder(again), h.state.RemovedBefore(tenant, index, time.Now()))
		if err := put(ctx, docs, tenant, index, list); err != nil {
			return removed, made, err
		}
		made += len(list)
	}
	return removed, made, nil
}

// ReindexReport counts the documents whose search entries were rebuilt.
type ReindexReport struct {
	Index     string `json:"index"` // empty: all of the store, which has them together
	Documents int64  `json:"documents"`
}

// ReindexSearch rebuilds the search entries from the documents themselves, while no node uses the
// directory: in SQLite the entries of all indices; in an OpenSearch an index with the mapping of
// this program behind the alias, for the named index or for each that has an alias. See the drivers
// for what a crash leaves.
func ReindexSearch(ctx context.Context, dir string, at datadir.DocumentsAt, index string) (out []ReindexReport, err error) {
	if index != "" && !slices.Contains(storage.Indices, index) {
		return nil, fmt.Errorf("%s %w", index, ErrNoIndex)
	}
	lock, err := datadir.Lock(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if at.URL == "" {
		if _, err := os.Stat(datadir.DocumentsFile(dir)); err != nil {
			return nil, err
		}
		n, err := sqlite.ReindexDocuments(ctx, datadir.DocumentsFile(dir))
		if err != nil {
			return nil, err
		}
		return []ReindexReport{{"", n}}, nil
	}
	d, err := datadir.RemoteDocuments(at)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	for _, name := range storage.Indices {
		if _, months := storage.Appended[name]; index != "" && name != index || index == "" && months {
			continue
		}
		n, err := d.Reindex(ctx, name)
		if err != nil {
			return out, err
		}
		out = append(out, ReindexReport{name, n})
	}
	return out, nil
}

// ErrNoIndex says that there is no such index.
var ErrNoIndex = errors.New("is no index: one of " + strings.Join(storage.Indices, ", "))

// inOrder sorts documents by position, so that a crash leaves the first ones.
func inOrder(docs map[string]storage.Document) []storage.Document {
	return slices.SortedFunc(maps.Values(docs), func(a, b storage.Document) int {
		return cmp.Or(cmp.Compare(a.Position, b.Position), strings.Compare(a.ID, b.ID))
	})
}

// put writes documents unchanged; those that exist already stay.
func put(ctx context.Context, to storage.Documents, tenant, index string, docs []storage.Document) error {
	if len(docs) == 0 {
		return nil
	}
	if _, appended := storage.Appended[index]; appended {
		_, err := to.Create(ctx, tenant, index, docs...)
		return err
	}
	for _, doc := range docs {
		if err := to.Put(ctx, tenant, index, doc); err != nil {
			return fmt.Errorf("%s of %s: document %s: %w", index, tenant, doc.ID, err)
		}
	}
	return nil
}

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

// Purge removes documents by their members and positions. The database itself has no entries to find them by.
func (p *projection) Purge(ctx context.Context, tenant, index string, q storage.Query) (int, error) {
	docs, err := documentsOf(ctx, p.Documents, tenant, index)
	if err != nil {
		return 0, err
	}
	n := 0
	for id, doc := range docs {
		members := map[string]any{}
		if err := json.Unmarshal(doc.Body, &members); err != nil {
			return n, err
		}
		selected := q.Before == 0 || doc.Position < q.Before
		for name, values := range q.Terms {
			is, _ := members[name].(string)
			selected = selected && slices.Contains(values, is)
		}
		if selected {
			if err := p.Delete(ctx, tenant, index, id); err != nil {
				return n, err
			}
			n++
		}
	}
	return n, nil
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
