package node

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"aob.dev/writ/audit"
	"aob.dev/writ/intents"
	"aob.dev/writ/internal/keydir"
	"aob.dev/writ/router/recorder"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/sqlite"
)

// Fsck checks a data directory: journal, ledger and blobs (audit.Fsck), and that
// the documents which the recorder made are those that it would make of the
// journal again. It changes nothing in the directory; the documents are compared
// on a copy, and only where no process is using them.
func Fsck(ctx context.Context, dir string, progress func(done, total int64)) (h audit.Health, err error) {
	started := time.Now()
	a, err := OpenArchive(ctx, dir)
	if err != nil {
		return h, err
	}
	defer func() {
		h.Seconds = float64(time.Since(started).Milliseconds()) / 1000
		err = errors.Join(err, a.Close())
	}()
	held, err := keydir.LoadAll(keysDir(dir))
	if err != nil {
		return h, err
	}
	var keys []intents.Key
	for _, s := range held.Of(intents.RoleLedger) {
		keys = append(keys, s.VerificationKey())
	}
	if h, err = audit.Fsck(ctx, a.Source, keys, progress); err != nil || !h.OK {
		return h, err
	}
	if err := a.checkKeys(ctx, &h); err != nil || !h.OK {
		return h, err
	}
	if _, err := os.Stat(filepath.Join(dir, "documents.db")); errors.Is(err, fs.ErrNotExist) {
		return h, nil // the documents are kept elsewhere
	}
	lock, err := lockDir(dir)
	if err != nil {
		return h, nil // in use: the report says that nothing was compared
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	bad, err := compareProjections(ctx, dir, a.Records, &h)
	if bad != nil {
		h.OK, h.FirstBad = false, bad
	}
	return h, err
}

// checkKeys holds the journal's key log, and what else stands beside the parts of
// its records, to these: they alone are under the leaves.
func (a *Archive) checkKeys(ctx context.Context, h *audit.Health) (err error) {
	var damage *sqlite.DamageError
	h.UnprovenKeys, err = a.records.CheckKeys(ctx)
	if errors.As(err, &damage) {
		h.OK, h.FirstBad = false, &audit.Bad{Position: damage.Position, Reason: damage.Reason}
		return nil
	}
	return err
}

// projections are the indices that the recorder alone writes.
var projections = []string{storage.IndexPlans, storage.IndexEvents, storage.IndexSkillCalls, storage.IndexOrders}

// compareProjections makes all documents again, in a directory of its own.
func compareProjections(ctx context.Context, dir string, records storage.Records, h *audit.Health) (bad *audit.Bad, err error) {
	temp, err := os.MkdirTemp("", "writ-fsck-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	for _, suffix := range []string{"", "-wal"} {
		if err := copyFile(filepath.Join(temp, "theirs"+suffix), filepath.Join(dir, "documents.db"+suffix)); err != nil {
			return nil, err
		}
	}
	theirs, err := sqlite.OpenDocuments(ctx, filepath.Join(temp, "theirs"), checkDocument)
	if err != nil {
		return &audit.Bad{Position: -1, Reason: fmt.Sprintf("documents.db: %v", err)}, nil
	}
	defer func() { err = errors.Join(err, theirs.Close()) }()
	ours, err := sqlite.OpenDocuments(ctx, filepath.Join(temp, "ours"), checkDocument)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, ours.Close()) }()
	directory, err := rebuild(ctx, records, ours)
	if err != nil {
		return &audit.Bad{Position: -1, Reason: fmt.Sprintf("the journal cannot be projected: %v", err)}, ctx.Err()
	}
	h.Compared = true
	for _, tenant := range directory.Tenants() {
		for _, index := range projections {
			c := comparison{tenant, index, directory.Removed(tenant, index, time.Now())}
			if bad, err := c.run(ctx, ours, theirs, h); bad != nil || err != nil {
				return bad, err
			}
		}
	}
	return nil, nil
}

// rebuild projects the whole journal, what was removed by age too, and returns its
// fold.
func rebuild(ctx context.Context, records storage.Records, into storage.Documents) (*state.State, error) {
	fold, err := foldOf(ctx, records)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := recorder.New(records, into, slog.New(slog.DiscardHandler))
	ended := make(chan error, 1)
	go func() {
		ended <- r.Run(ctx)
		cancel() // where it ended by itself, nothing more is reached
	}()
	reached := r.Reach(ctx, records.Next())
	cancel()
	if err := <-ended; err != nil {
		return nil, err
	}
	return fold, reached
}

// comparison is of one tenant's documents of an index.
type comparison struct {
	tenant, index string
	removed       time.Time // documents from before it may have been removed, by the record; zero: none may
}

// run compares both ways. What the recorder has not come to yet is behind, not
// wrong; of what may have been removed nothing is said.
func (c comparison) run(ctx context.Context, ours, theirs storage.Documents, h *audit.Health) (*audit.Bad, error) {
	tenant, index := c.tenant, c.index
	want, err := documentsOf(ctx, ours, tenant, index)
	if err != nil {
		return nil, err
	}
	have, err := documentsOf(ctx, theirs, tenant, index)
	if err != nil {
		return nil, err
	}
	var reached int64
	for _, doc := range have {
		reached = max(reached, doc.Position)
	}
	for _, doc := range slices.SortedFunc(maps.Values(want), func(a, b storage.Document) int { return cmp.Compare(a.Position, b.Position) }) {
		id := doc.ID
		got, there := have[id]
		delete(have, id)
		if storage.Older(index, doc.Body, c.removed) {
			continue
		}
		h.Projections++
		switch {
		case there && got.Position == doc.Position && sameJSON(got.Body, doc.Body):
		case doc.Position > reached || (there && got.Position < doc.Position && doc.Position >= reached):
			h.Behind++
		case there:
			return &audit.Bad{Position: doc.Position, Reason: fmt.Sprintf("%s of %s: document %s is not what the journal makes", index, tenant, id)}, nil
		default:
			return &audit.Bad{Position: doc.Position, Reason: fmt.Sprintf("%s of %s: document %s is missing", index, tenant, id)}, nil
		}
	}
	for _, id := range slices.Sorted(maps.Keys(have)) {
		return &audit.Bad{Position: have[id].Position, Reason: fmt.Sprintf("%s of %s: document %s follows from no record", index, tenant, id)}, nil
	}
	return nil, nil
}

// documentsOf an index, by id.
func documentsOf(ctx context.Context, d storage.Documents, tenant, index string) (map[string]storage.Document, error) {
	out := map[string]storage.Document{}
	for q := (storage.Query{Limit: 1000}); ; {
		page, err := d.Search(ctx, tenant, index, q)
		if err != nil {
			return nil, err
		}
		for _, doc := range page.Documents {
			out[doc.ID] = doc
		}
		if q.After = page.Cursor; q.After == "" {
			return out, nil
		}
	}
}

// sameJSON compares by value: a store may spell a document its own way.
func sameJSON(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	x, err1 := intents.Canonical(json.RawMessage(a))
	y, err2 := intents.Canonical(json.RawMessage(b))
	return err1 == nil && err2 == nil && bytes.Equal(x, y)
}

// copyFile copies a file; one that is not there is left out.
func copyFile(to, from string) error {
	in, err := os.Open(from) //nolint:gosec // G304: the data directory
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // G304: a directory of ours
	if err != nil {
		return errors.Join(err, in.Close())
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, in.Close(), out.Close())
}
