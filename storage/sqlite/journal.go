package sqlite

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"aob.dev/writ/internal/durable"
	"aob.dev/writ/internal/failpoint"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/internal/group"
	"aob.dev/writ/storage/judge"
)

// DefaultFreeFloor is how much disk must be free, in bytes, for new intents to be
// accepted. Outcomes of a few thousand open intents and a checkpoint fit below it.
const DefaultFreeFloor = 256 << 20

// journalReaders is the number of connections that Get and Scan share.
const journalReaders = 4

// JournalOptions tune a journal. The zero value works.
type JournalOptions struct {
	// Observer is called with every record, first with the stored ones while opening.
	Observer storage.Observer
	// From is the index of the records before From.Next: those are not read, nor shown
	// to the observer. The caller vouches for it, the journal owns it from now on, and
	// has at least that many records. Nil: all are read.
	From *Index
	// OnFatal is called once, from any goroutine, when a write or a sync failed
	// in a way that leaves the file in doubt. The process must exit then: it
	// cannot know what is on disk. It must not call Close. Nil: every later
	// call fails, nothing else.
	OnFatal func(error)
	// OnDamage is called while opening with the stored values beside a record that did not match its
	// parts. The parts are used.
	OnDamage func(*DamageError)
	// OnLost is called while opening with each key file that is missing or cut off, and for each
	// record that is read whose erasable parts cannot be decrypted although nobody has erased
	// their key. They read as erased. Nil: not called.
	OnLost func(error)
	// OnWrite is called by one goroutine with the number of requests written with one sync, and
	// the time that it took. Nil: not called.
	OnWrite func(requests int, took time.Duration)
	// Admit is called before intents are accepted, after their decisions: an error
	// refuses them with storage.ErrNotReady. Nil: nothing does.
	Admit func() error
	// Cache bounds the page caches together, in bytes. 0: DefaultCache.
	Cache int64
	// FreeFloor is in bytes. 0: DefaultFreeFloor; negative: no floor.
	FreeFloor int64
}

// Journal is storage.Journal and storage.Records in one SQLite file. One process
// at a time may use a directory.
type Journal struct {
	store[*group.Request]
	group.Journal // the writer goroutine changes its state, everyone reads
	dir           string
	options       JournalOptions
	keys          *keyFiles
	tail          tail

	body []byte // used by the writer goroutine only: the buffer that bodies are encoded in
}

var (
	_ storage.Journal = (*Journal)(nil)
	_ storage.Records = (*Journal)(nil)
)

var journalSchema = []string{`
	CREATE TABLE records(position INTEGER PRIMARY KEY, kind INTEGER NOT NULL, body BLOB NOT NULL) STRICT;
	CREATE TABLE commits(first INTEGER PRIMARY KEY, ids BLOB NOT NULL) STRICT`}

// OpenJournal opens or creates the journal of a directory, which is created if it is
// missing (0700); its key files are in KeysName beside it. It returns when the observer has received every stored record. A
// gap or a body that cannot be read is an error: such a file is damaged.
//
// Two goroutines run until Close: the writer and the checkpointer.
func OpenJournal(ctx context.Context, dir string, o JournalOptions) (*Journal, error) {
	if err := durable.MkdirAll(dir); err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	db, err := connect(ctx, filepath.Join(dir, "journal.db"), journalReaders, o.Cache, journalSchema)
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	if o.Observer == nil {
		o.Observer = func(storage.Entry) {}
	}
	if o.OnDamage == nil {
		o.OnDamage = func(*DamageError) {}
	}
	if o.OnLost == nil {
		o.OnLost = func(error) {}
	}
	if o.From == nil {
		o.From = NewIndex()
	}
	o.FreeFloor = cmp.Or(o.FreeFloor, DefaultFreeFloor)
	j := &Journal{dir: dir, options: o, keys: keysOf(dir)}
	j.Journal = group.Journal{Calls: &j.Queue, Records: j, State: o.From.state}
	j.db, j.Failing, j.OnFatal, j.OnWrite = db, "journal failed, the process must exit", o.OnFatal, o.OnWrite
	failpoint.Hit(failpoint.JournalOpening)
	if err := j.replay(ctx); err != nil {
		return nil, fmt.Errorf("open journal: %w", errors.Join(err, db.close()))
	}
	failpoint.Hit(failpoint.JournalReplayed)
	j.start(ctx, j.write)
	return j, nil
}

// Close ends the journal; see storage.Journal.
func (j *Journal) Close() error { return errors.Join(j.store.Close(), j.keys.Close()) }

// Index is what a journal has of its records in memory: the holder of each key, the state
// of each intent, the last write of each subject. It follows from the records, and is stored
// in a snapshot so that not all of them are read at every opening. One goroutine uses it.
type Index struct{ state *judge.State }

// NewIndex is that of no records.
func NewIndex() *Index { return &Index{judge.NewState()} }

// Observe takes the next record; see Records.Entries.
func (x *Index) Observe(e storage.Entry) { x.state.Apply(e) }

// Next is the position after the last record that it has read.
func (x *Index) Next() int64 { return x.state.Next() }

// Write it so that ReadIndex reads it. The same records give the same bytes.
func (x *Index) Write(w io.Writer) error { return x.state.Write(w) }

// ReadIndex reads what Write wrote, and leaves what follows it. Whoever stores
// the bytes must ensure with a signature that they are unchanged.
func ReadIndex(r *bytes.Reader) (*Index, error) {
	s, err := judge.Read(r)
	return &Index{s}, err
}
