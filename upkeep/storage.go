package upkeep

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"aob.dev/writ/executors/files"
	"aob.dev/writ/intents"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/ledger"
	"aob.dev/writ/storage/sqlite"
)

// StorageStatus describes a data directory and its documents. Scripts rely on its format.
type StorageStatus struct {
	Backend     string      `json:"backend"` // of documents: sqlite or opensearch
	Journal     StoreSize   `json:"journal"`
	Ledger      StoreSize   `json:"ledger"`
	Documents   StoreSize   `json:"documents"`
	Blobs       StoreSize   `json:"blobs"`    // files, those of steps too; on a server the retained ones
	BlobsAt     string      `json:"blobs_at"` // dir, or a URL
	Indices     []IndexSize `json:"indices"`
	Projections struct {
		Behind int64 `json:"behind"` // intents that are not in agent_intents yet
	} `json:"projections"`
	Disk struct {
		Free  int64 `json:"free"`  // bytes that may still be filled
		Floor int64 `json:"floor"` // bytes below which no new intent is accepted; 0: none
	} `json:"disk"`
}

// StoreSize of one store. Count is of records, leaves, documents or files.
type StoreSize struct {
	Version int64 `json:"version,omitempty"` // of its tables
	Count   int64 `json:"count"`
	Bytes   int64 `json:"bytes"` // 0 where another server stores it
	Behind  int64 `json:"behind,omitempty"`
}

// IndexSize is the size of an index over all tenants.
type IndexSize struct {
	Index     string `json:"index"`
	Documents int64  `json:"documents"`
}

// ReadStorageStatus reads the status of a data directory; a process may use it meanwhile. floor is
// in bytes; negative: none.
func ReadStorageStatus(ctx context.Context, dir string, at datadir.DocumentsAt, floor int64) (s StorageStatus, err error) {
	records, err := sqlite.OpenRecords(ctx, datadir.Journal(dir))
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, records.Close()) }()
	rebuilt, err := datadir.RebuildState(ctx, records)
	if err != nil {
		return s, err
	}
	s.Disk.Floor = max(floor, 0)
	if s.Disk.Free, err = sqlite.Free(dir); err != nil {
		return s, err
	}
	if s.Journal, err = journalSize(ctx, dir); err != nil {
		return s, err
	}
	if s.Ledger, err = ledgerSize(dir, s.Journal.Count); err != nil {
		return s, err
	}
	if err := s.blobs(ctx, dir, rebuilt.Tenants()); err != nil {
		return s, err
	}
	spaces, err := s.spaces(ctx, dir, at, rebuilt.Tenants())
	if err != nil {
		return s, err
	}
	counts, newest := map[string]int64{}, storage.NoPosition
	for _, space := range spaces {
		counts[space.Index] += space.Documents
		s.Documents.Count += space.Documents
		if space.Index == storage.IndexIntents {
			newest = max(newest, space.Newest)
		}
	}
	for _, index := range storage.Indices {
		s.Indices = append(s.Indices, IndexSize{index, counts[index]})
	}
	s.Projections.Behind, err = intentsAfter(ctx, records, newest)
	return s, err
}

// blobs counts blobs where they are. Sizes are known of files alone.
func (s *StorageStatus) blobs(ctx context.Context, dir string, tenants []string) (err error) {
	at, err := datadir.PlaceOf(dir)
	if err != nil {
		return err
	}
	s.BlobsAt = at.URL
	if at.Local() {
		s.Blobs.Count, s.Blobs.Bytes, err = datadir.Usage(filepath.Join(dir, "blobs"))
		return err
	}
	b, err := at.Open(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	if !slices.Contains(tenants, ledger.SystemTenant) { // of policies and catalogs
		tenants = append(slices.Clone(tenants), ledger.SystemTenant)
	}
	for _, tenant := range tenants {
		refs, err := b.ListOld(ctx, tenant, everyAge)
		if err != nil {
			return err
		}
		s.Blobs.Count += int64(len(refs))
	}
	return nil
}

// everyAge is an age that every blob has, whatever the clocks of two machines say.
const everyAge = -100 * 365 * 24 * time.Hour

func journalSize(ctx context.Context, dir string) (size StoreSize, err error) {
	j, err := sqlite.OpenSizes(ctx, datadir.JournalFile(dir))
	if err != nil {
		return size, err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	var err1, err2, err3 error
	size.Count, err1 = j.Records(ctx)
	size.Version, err2 = j.Version(ctx)
	size.Bytes, err3 = j.Bytes(ctx)
	return size, errors.Join(err1, err2, err3)
}

func ledgerSize(dir string, records int64) (size StoreSize, err error) {
	text, err := os.ReadFile(filepath.Join(datadir.Ledger(dir), "checkpoint"))
	if err == nil {
		var c ledger.Checkpoint
		c, err = ledger.ReadCheckpoint(string(text))
		size.Count = c.Size
	} else if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	size.Behind = max(records-size.Count, 0)
	if err != nil {
		return size, err
	}
	_, size.Bytes, err = datadir.Usage(datadir.Ledger(dir))
	return size, err
}

// spaces returns the sizes of the indices of documents, and what is known of the store as a whole.
func (s *StorageStatus) spaces(ctx context.Context, dir string, at datadir.DocumentsAt, tenants []string) (out []sqlite.Space, err error) {
	if at.URL != "" {
		s.Backend = "opensearch"
		return remoteSpaces(ctx, at, tenants)
	}
	s.Backend = "sqlite"
	d, err := sqlite.OpenSizes(ctx, datadir.DocumentsFile(dir))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	var err1, err2 error
	s.Documents.Version, err1 = d.Version(ctx)
	s.Documents.Bytes, err2 = d.Bytes(ctx)
	out, err = d.Spaces(ctx)
	return out, errors.Join(err, err1, err2)
}

// remoteSpaces creates nothing: a missing index has no documents.
func remoteSpaces(ctx context.Context, at datadir.DocumentsAt, tenants []string) (out []sqlite.Space, err error) {
	d, err := datadir.RemoteDocuments(at)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	missing, err := d.Missing(ctx)
	if err != nil {
		return nil, err
	}
	for _, tenant := range tenants {
		for _, index := range storage.Indices {
			if slices.Contains(missing, index) {
				continue
			}
			space := sqlite.Space{Index: index, Newest: storage.NoPosition}
			all, err := d.Aggregate(ctx, tenant, index, storage.Query{}, storage.Aggregation{})
			if err != nil {
				return nil, err
			}
			for _, bucket := range all {
				space.Documents += bucket.Count
			}
			last, err := d.Search(ctx, tenant, index, storage.Query{Sort: "-" + storage.ByPosition, Limit: 1})
			if err != nil {
				return nil, err
			}
			if len(last.Documents) > 0 {
				space.Newest = last.Documents[0].Position
			}
			out = append(out, space)
		}
	}
	return out, nil
}

// intentsAfter counts the intents after a position in the journal.
func intentsAfter(ctx context.Context, records storage.Records, position int64) (n int64, err error) {
	for rec, err := range records.Scan(ctx, position+1) {
		if err != nil {
			return n, err
		}
		if rec.Kind == storage.KindIntent {
			n++
		}
	}
	return n, nil
}

// GCReport lists what `writ admin storage gc` removed.
type GCReport struct {
	Expired int `json:"expired"` // memories that have expired
	Old     int `json:"old"`     // documents older than their retention
	Scopes  int `json:"scopes"`  // temporary files of steps that never ended, and what a crash left
	Blobs   int `json:"blobs"`   // content that no record names
}

// Collect removes unreachable data, while no node uses the directory: memories that have expired,
// documents that are older than their tenant's retention, temporary files that are older than an
// hour, and blobs older than blobAge that no record names. It never changes journal and ledger.
func Collect(ctx context.Context, dir string, at datadir.DocumentsAt, now time.Time) (c GCReport, err error) {
	h, err := hold(ctx, dir)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	docs, err := openDocuments(ctx, dir, at)
	if err != nil {
		return c, err
	}
	c.Expired, c.Old, err = storage.RemoveAged(ctx, docs, h.state, now)
	if err := errors.Join(err, docs.Close()); err != nil {
		return c, err
	}
	blobs, err := datadir.OpenBlobs(ctx, dir)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, blobs.Close()) }()
	if c.Scopes, err = blobs.Sweep(ctx, files.SweepAge); err != nil {
		return c, err
	}
	c.Blobs, err = storage.Collect(ctx, blobs, h.records, slices.DeleteFunc(h.state.Tenants(), isSystem), blobAge)
	return c, err
}

// blobAge is how long a blob stays that no record names yet. It is longer than an intent may live,
// with the time of a hold.
const blobAge = 2 * intents.MaxHold

// isSystem reports whether a tenant's blobs are policies and catalogs, which no record names as its
// own.
func isSystem(tenant string) bool { return tenant == ledger.SystemTenant }
