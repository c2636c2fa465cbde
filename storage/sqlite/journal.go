package sqlite

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"aob.dev/writ/internal/durable"
	"aob.dev/writ/internal/failpoint"
	"aob.dev/writ/storage"
)

// DefaultFreeFloor is how much disk must be free, in bytes, for new orders to be
// taken. Outcomes of a few thousand open orders and a checkpoint fit below it.
const DefaultFreeFloor = 256 << 20

// journalReaders is the number of connections that Get and Scan share.
const journalReaders = 4

// JournalOptions tune a journal. The zero value works.
type JournalOptions struct {
	// Observer is told every record, first the stored ones while opening.
	Observer storage.Observer
	// OnFatal is called once, from any goroutine, when a write or a sync failed
	// in a way that leaves the file in doubt. The process must exit then: it
	// cannot know what is on disk. It must not call Close. Nil: every later
	// call fails, nothing else.
	OnFatal func(error)
	// OnDamage is called while opening with what beside a record did not match its
	// parts. The parts are believed, and a wrong key log is repaired.
	OnDamage func(*DamageError)
	// Admit is called before orders are taken, after their decisions: an error
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
	dir      string
	db       *database
	observe  storage.Observer
	onFatal  func(error)
	onDamage func(*DamageError)
	admit    func() error
	floor    int64

	mu    sync.RWMutex // guards state: the writer goroutine changes it, everyone reads
	state *state

	statements statements // used by the writer goroutine only
	body       []byte     // likewise: the buffer that bodies are encoded in

	requests   *group[*request]
	ckpt       *checkpointer
	background context.CancelFunc
	running    sync.WaitGroup

	failed   failure // once set no call succeeds
	closing  sync.Once
	closeErr error
}

var (
	_ storage.Journal = (*Journal)(nil)
	_ storage.Records = (*Journal)(nil)
)

var journalSchema = []string{`
	CREATE TABLE records(position INTEGER PRIMARY KEY, kind INTEGER NOT NULL, body BLOB NOT NULL) STRICT;
	CREATE TABLE keylog(first INTEGER PRIMARY KEY, keys BLOB NOT NULL, commits BLOB NOT NULL) STRICT`}

// OpenJournal opens or creates the journal of a directory, which is made if it is
// missing (0700). It returns when the observer has seen every stored record. A
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
	j := &Journal{
		dir: dir, db: db, observe: o.Observer, onFatal: o.OnFatal, admit: o.Admit, floor: o.FreeFloor, state: newState(),
	}
	if j.observe == nil {
		j.observe = func(storage.Entry) {}
	}
	if j.floor == 0 {
		j.floor = DefaultFreeFloor
	}
	if j.onDamage = o.OnDamage; j.onDamage == nil {
		j.onDamage = func(*DamageError) {}
	}
	failpoint.Hit(failpoint.JournalOpening)
	if err := j.replay(ctx); err != nil {
		return nil, fmt.Errorf("open journal: %w", errors.Join(err, db.close()))
	}
	if j.statements, err = prepare(ctx, db.writer); err != nil {
		return nil, fmt.Errorf("open journal: %w", errors.Join(err, db.close()))
	}
	failpoint.Hit(failpoint.JournalReplayed)
	j.start(context.WithoutCancel(ctx))
	return j, nil
}

func (j *Journal) start(ctx context.Context) {
	ctx, j.background = context.WithCancel(ctx)
	write := context.WithoutCancel(ctx) // a write is never cancelled
	j.ckpt = &checkpointer{conn: j.db.ckpt, failed: j.fail}
	j.requests = newGroup(func(batch []*request) { j.write(write, batch) })
	j.running.Go(j.requests.run)
	j.running.Go(func() { j.ckpt.run(ctx) })
}

// Close writes what is queued, checkpoints, and closes the file. Calls that come
// later get ErrClosed. It may be called twice.
func (j *Journal) Close() error {
	j.closing.Do(func() {
		j.requests.close()
		j.background()
		j.running.Wait()
		j.closeErr = errors.Join(j.statements.close(), j.db.close())
	})
	return j.closeErr
}

// fail makes every later call fail and tells the owner once.
func (j *Journal) fail(err error) {
	err = fmt.Errorf("journal failed, the process must exit: %w", err)
	if j.failed.set(err) && j.onFatal != nil {
		j.onFatal(err)
	}
}

// Lookup says who holds a key; see storage.Journal.
func (j *Journal) Lookup(ctx context.Context, key storage.Key) (storage.Holder, bool, error) {
	if err := errors.Join(ctx.Err(), j.failed.get()); err != nil {
		return storage.Holder{}, false, err
	}
	j.mu.RLock()
	defer j.mu.RUnlock()
	position := j.state.holder(key)
	if position == storage.Nobody {
		return storage.Holder{Position: storage.Nobody, Outcome: storage.Nobody}, false, nil
	}
	return j.state.order(position).holder(position), true, nil
}

// Holder says in which state an order is; see storage.Journal.
func (j *Journal) Holder(ctx context.Context, position int64) (storage.Holder, error) {
	if err := errors.Join(ctx.Err(), j.failed.get()); err != nil {
		return storage.Holder{}, err
	}
	j.mu.RLock()
	defer j.mu.RUnlock()
	o := j.state.order(position)
	if o.place == notAnOrder {
		return storage.Holder{}, storage.ErrNotFound
	}
	return o.holder(position), nil
}

// Commit writes all entries or none; see storage.Journal.
func (j *Journal) Commit(ctx context.Context, c storage.Commit) (storage.Result, error) {
	a, err := j.ask(ctx, func(d *draft) (a answer) {
		a.result, a.err = d.commit(c)
		return a
	})
	return a.result, errors.Join(err, a.err)
}

// Finish writes the outcome of an open order; see storage.Journal.
func (j *Journal) Finish(ctx context.Context, of int64, attempt int, outcome storage.Record, touches []storage.Subject) (int64, error) {
	if outcome.Kind != storage.KindOutcome {
		return storage.Nobody, fmt.Errorf("finish: the record is %q, not an outcome", outcome.Kind)
	}
	a, err := j.ask(ctx, func(d *draft) (a answer) {
		a.position, a.err = d.finish(of, attempt, storage.Entry{Record: outcome, Of: of, Touches: touches})
		return a
	})
	if err := errors.Join(err, a.err); err != nil {
		return storage.Nobody, err
	}
	return a.position, nil
}

// Take begins another attempt at an open order; see storage.Journal.
func (j *Journal) Take(ctx context.Context, of int64, takeover storage.Record) (int, error) {
	if takeover.Kind != storage.KindTakeover {
		return 0, fmt.Errorf("take: the record is %q, not a takeover", takeover.Kind)
	}
	a, err := j.ask(ctx, func(d *draft) (a answer) {
		a.attempt, a.err = d.take(of, storage.Entry{Record: takeover, Of: of})
		return a
	})
	if err := errors.Join(err, a.err); err != nil {
		return 0, err
	}
	return a.attempt, nil
}
