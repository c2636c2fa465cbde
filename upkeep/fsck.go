package upkeep

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"aob.dev/writ/audit"
	"aob.dev/writ/intents"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/keydir"
	"aob.dev/writ/router/recorder"
	"aob.dev/writ/storage"
)

// Fsck checks a data directory: journal, ledger and blobs (audit.Fsck), and that the recorder's
// documents are those that it would make from the journal again. It changes nothing in the
// directory; the documents are compared on a copy, and only if no process uses them.
func Fsck(ctx context.Context, dir string, progress func(done, total int64)) (h audit.Health, err error) {
	started := time.Now()
	a, err := datadir.OpenArchive(ctx, dir)
	if err != nil {
		return h, err
	}
	missing, err := a.Journal.MissingKeys(ctx)
	if err != nil {
		return h, errors.Join(err, a.Close())
	}
	defer func() {
		switch {
		case !h.OnlyUnexplained():
		case len(missing) == 0:
			h.FirstBad.Reason += "; " + h.Unexplained[0].Advice()
		default:
			h.FirstBad.Reason += "; key files are missing or cut off, put them back: " + strings.Join(missing, ", ")
		}
		h.Seconds = float64(time.Since(started).Milliseconds()) / 1000
		err = errors.Join(err, a.Close())
	}()
	held, err := keydir.LoadAll(datadir.Keys(dir))
	if err != nil {
		return h, err
	}
	var keys []intents.Key
	for _, s := range held.ByRole(intents.RoleLedger) {
		keys = append(keys, s.VerificationKey())
	}
	source := a.Source
	source.Records = datadir.CheckedRecords{Records: a.Journal}
	if _, err := os.Stat(datadir.DocumentsFile(dir)); errors.Is(err, fs.ErrNotExist) {
		return audit.Fsck(ctx, source, keys, progress) // the documents are stored elsewhere
	}
	lock, err := datadir.Lock(dir)
	if err != nil { // in use: the report says that nothing was compared
		return audit.Fsck(ctx, source, keys, progress)
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	return checkAndCompare(ctx, dir, source, keys, progress)
}

// checkAndCompare is audit.Fsck, and compares the recorder's documents. Each record is read once.
func checkAndCompare(ctx context.Context, dir string, source audit.Source, keys []intents.Key, progress func(done, total int64)) (h audit.Health, err error) {
	projecting, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan struct{})
	shared := newSharedScan(source.Records, ended)
	var ours *projection
	var unprojected error
	go func() {
		defer close(ended)
		ours, unprojected = project(projecting, dir, shared.second())
	}()
	source.Records = shared
	h, err = audit.Fsck(ctx, source, keys, progress)
	if err != nil || !h.OK {
		cancel()
	}
	<-ended
	if ours != nil {
		defer func() { err = errors.Join(err, ours.Close()) }()
	}
	if err != nil || !h.OK {
		return h, err
	}
	bad := &audit.Bad{Position: -1}
	if unprojected != nil {
		bad.Reason, err = unprojected.Error(), ctx.Err()
	} else {
		bad, err = compareProjections(ctx, dir, ours, &h)
	}
	if bad != nil {
		h.OK, h.FirstBad = false, bad
	}
	return h, err
}

// compareProjections compares all documents, made again, with a copy of the existing ones.
func compareProjections(ctx context.Context, dir string, ours *projection, h *audit.Health) (bad *audit.Bad, err error) {
	theirs, err := ours.beside(ctx, datadir.DocumentsFile(dir))
	if err != nil {
		return &audit.Bad{Position: -1, Reason: fmt.Sprintf("documents.db: %v", err)}, ctx.Err()
	}
	defer func() { err = errors.Join(err, theirs.Close()) }()
	h.Compared, h.SetAside = true, ours.unprojected
	events, err := documentsOf(ctx, theirs, storage.SystemTenant, storage.IndexEvents)
	if err != nil {
		return nil, err
	}
	for _, doc := range events {
		if recorder.IsAside(doc) {
			h.SetAside = append(h.SetAside, doc.Position)
		}
	}
	slices.Sort(h.SetAside)
	h.SetAside = slices.Compact(h.SetAside)
	for _, tenant := range ours.state.Tenants() {
		for _, index := range projections {
			c := comparison{tenant, index, ours.state.RemovedBefore(tenant, index, time.Now())}
			if bad, err := c.run(ctx, ours, theirs, h); bad != nil || err != nil {
				return bad, err
			}
		}
	}
	return nil, nil
}

// comparison is of one tenant's documents of an index.
type comparison struct {
	tenant, index string
	removed       time.Time // documents from before it may have been removed, by the record; zero: none may
}

// run compares both ways. Documents that the recorder has not reached yet are behind, not wrong;
// the same holds for missing documents of a record that was set aside. Documents that may have been
// removed by age are not compared.
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
		case slices.Contains(h.SetAside, doc.Position) && (!there || got.Position < doc.Position):
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
		if slices.Contains(h.SetAside, have[id].Position) {
			continue
		}
		return &audit.Bad{Position: have[id].Position, Reason: fmt.Sprintf("%s of %s: document %s follows from no record", index, tenant, id)}, nil
	}
	return nil, nil
}

// sameJSON compares by value: a store may encode a document differently.
func sameJSON(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	x, err1 := intents.Canonical(json.RawMessage(a))
	y, err2 := intents.Canonical(json.RawMessage(b))
	return err1 == nil && err2 == nil && bytes.Equal(x, y)
}

// sharedAhead is how many records the first reader of a shared scan may be ahead of the second.
const sharedAhead = 256

// sharedScan is a journal that two readers scan from its beginning, and which is read once. The
// second gets each record after the first has gone on to the next.
type sharedScan struct {
	storage.Records
	passed chan storage.Record // closed at the end of the first reader's scan
	left   <-chan struct{}     // closed when the second reader has ended
}

func newSharedScan(records storage.Records, left <-chan struct{}) *sharedScan {
	return &sharedScan{records, make(chan storage.Record, sharedAhead), left}
}

// Scan implements storage.Records for the first reader, who scans once.
func (s *sharedScan) Scan(ctx context.Context, from int64) iter.Seq2[storage.Record, error] {
	return func(yield func(storage.Record, error) bool) {
		defer close(s.passed)
		for rec, err := range s.Records.Scan(ctx, from) {
			if !yield(rec, err) || err != nil {
				return
			}
			select {
			case s.passed <- rec:
			case <-s.left: // the first goes on alone
			}
		}
	}
}

// second is the journal for the second reader.
func (s *sharedScan) second() storage.Records { return secondScan{s.Records, s.passed} }

type secondScan struct {
	storage.Records
	passed <-chan storage.Record
}

// Scan implements storage.Records. It yields what the first reader has passed on since the scan
// before.
func (s secondScan) Scan(ctx context.Context, _ int64) iter.Seq2[storage.Record, error] {
	return func(yield func(storage.Record, error) bool) {
		for {
			select {
			case rec, more := <-s.passed:
				if !more || !yield(rec, nil) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}
