package measure

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"time"

	"aob.dev/writ/bench/scale"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/router/recorder"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/sqlite"
)

// logged plays turns until o.Intents are decided and measures what is made of them. The
// baseline of the last row is the bytes of a commit.
func logged(ctx context.Context, dir string, o Options) (rows []Row, err error) {
	w, err := newWorld(ctx, dir, time.Now)
	defer func() { err = errors.Join(err, w.close()) }()
	if err != nil {
		return nil, err
	}
	if err := w.start(ctx, answering{}, 0); err != nil {
		return nil, err
	}
	if _, err := w.play(ctx, o.Intents); err != nil {
		return nil, err
	}
	return w.made(ctx)
}

// made is what the journal is, and what follows it makes, for each of its intents.
func (w *world) made(ctx context.Context) ([]Row, error) {
	var total, signed, all float64
	for rec, err := range w.journal.Scan(ctx, 0) {
		if err != nil {
			return nil, err
		}
		if rec.Kind == storage.KindIntent {
			total++
		}
		signed += float64(len(rec.Parts[storage.PartEnvelope]))
		for name, part := range rec.Parts {
			all += float64(len(name) + len(part) + len(rec.Salts[name]))
		}
	}
	records := float64(w.journal.Next())
	each := func(start time.Time) float64 { return float64(time.Since(start).Microseconds()) / total }
	var apply float64
	kept, err := heldBy(func() (any, error) {
		start := time.Now()
		s, err := datadir.RebuildState(ctx, w.journal)
		apply = each(start)
		return s, err
	})
	if err != nil {
		return nil, err
	}
	keys, err := heldBy(func() (any, error) { return keyIndex(), nil })
	if err != nil {
		return nil, err
	}

	snapshot, written, err := w.snapshot(ctx)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	documents, size, err := w.project(ctx)
	if err != nil {
		return nil, err
	}
	projected := each(start)

	cpu := cpuTime()
	l, end, err := w.follow(ctx, make([]byte, 32))
	if err != nil {
		return nil, err
	}
	_, err = l.Sync(ctx)
	ledger := float64((cpuTime() - cpu).Microseconds()) / total
	if err := errors.Join(err, end()); err != nil {
		return nil, err
	}
	leaves, err := sizeOf(filepath.Join(w.dir, "ledger"))
	if err != nil {
		return nil, err
	}
	n := int64(total)
	row := func(name string, sum, beside float64, unit string) Row {
		return newRow(name, sum/total, beside/total, unit, n)
	}
	return []Row{
		newRow(scale.Apply, apply, apply, "µs", n),
		newRow(scale.Recorder, projected, apply, "µs", n),
		newRow(scale.Ledger, ledger, apply, "µs CPU", n),
		row(scale.Documents, float64(documents), records, "an intent, records"),
		row(scale.DocumentBytes, size, all, "an intent, journal"),
		row(scale.LedgerBytes, leaves, all, "an intent, journal"),
		row(scale.StateBytes, kept, all, "an intent, journal"),
		newRow(scale.KeyBytes, keys/indexed, float64(len(storage.Key{})), "an intent, one key", indexed),
		newRow(scale.Snapshot, snapshot/total, apply, "µs", n),
		row(scale.SnapshotBytes, written, all, "an intent, journal"),
		row(scale.JournalBytes, all, signed, "an intent, its envelope"),
	}, nil
}

// snapshot is how long it takes to read one of all records, in µs, and its bytes.
func (w *world) snapshot(ctx context.Context) (took, size float64, err error) {
	rebuilt, index := state.New(), sqlite.NewIndex()
	for rec, err := range w.journal.Scan(ctx, 0) {
		if err != nil {
			return 0, 0, err
		}
		e := state.EntryOf(rec)
		rebuilt.Observe(e)
		index.Observe(e)
	}
	var b bytes.Buffer
	if err := index.Write(&b); err != nil {
		return 0, 0, err
	}
	if _, err := rebuilt.Snapshot(&b); err != nil {
		return 0, 0, err
	}
	r := bytes.NewReader(b.Bytes())
	start := time.Now()
	_, err = sqlite.ReadIndex(r)
	if err == nil {
		_, err = state.Open(r)
	}
	return float64(time.Since(start).Microseconds()), float64(b.Len()), err
}

// project has a recorder make all documents, in a file that had none.
func (w *world) project(ctx context.Context) (documents int64, size float64, err error) {
	file := filepath.Join(w.dir, "documents.db")
	store, err := sqlite.OpenDocuments(ctx, file, storage.NewCheck(storage.DefaultDimension), 0)
	if err != nil {
		return 0, 0, err
	}
	c := &counting{Documents: store}
	r := recorder.New(w.journal, c, w.config.Log)
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		defer cancel() // where it ended by itself, nothing more is reached
		ended <- r.Run(ctx)
	}()
	reached := r.Reach(ctx, w.journal.Next())
	cancel()
	if err := errors.Join(<-ended, reached, store.Close()); err != nil {
		return 0, 0, err
	}
	size, err = sizeOf(file)
	return c.n.Load(), size, err
}

// counting counts the documents that are projected.
type counting struct {
	storage.Documents

	n atomic.Int64
}

func (c *counting) Project(ctx context.Context, tenant, index string, p storage.Projection) error {
	c.n.Add(int64(len(p.Put) + len(p.Created)))
	return c.Documents.Project(ctx, tenant, index, p)
}

// sizeOf a file, or of all files of a directory.
func sizeOf(path string) (bytes float64, err error) {
	err = filepath.WalkDir(path, func(_ string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err == nil {
			bytes += float64(info.Size())
		}
		return err
	})
	return bytes, err
}

// indexed is how many intents an index is measured with.
const indexed = 200_000

// keyIndex is what a journal keeps in memory of intents that have ended.
func keyIndex() *sqlite.Index {
	x, now := sqlite.NewIndex(), time.Now()
	intent := storage.NewRecord(storage.KindIntent, now, nil)
	outcome := storage.NewRecord(storage.KindOutcome, now, map[string]json.RawMessage{storage.PartOutcome: []byte(`{"status":"done"}`)})
	for i := range int64(indexed) {
		id := fmt.Sprint(i)
		x.Observe(storage.Entry{
			Record: intent, Take: true, Key: storage.NewIntentKeys(nil).Key(tenant, "u", "t", id), Holder: storage.NoPosition, Open: true, Target: storage.NoPosition,
			Writes: []storage.Subject{storage.Subject("plan/" + tenant + "/" + id)},
		})
		x.Observe(storage.Entry{Record: outcome, Target: 2 * i})
	}
	return x
}

// heldBy is how many bytes of the heap something holds.
func heldBy(made func() (any, error)) (float64, error) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	x, err := made()
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(x)
	return max(float64(after.HeapAlloc)-float64(before.HeapAlloc), 1), err
}
