// Package ledger is the transparency log over the journal: record i
// is leaf i of a Merkle tree (RFC 6962), stored as C2SP tlog-tiles with signed
// checkpoints, so that the holder of a checkpoint can be shown that a record is
// in the log, and that the log has only grown since.
//
// A leaf is the canonical JSON of
//
//	{"at":"2026-11-20T10:00:00.000Z","kind":"intent","position":23,
//	 "record_digest":"sha256:…","tenant_tag":"…","v":1}
//
// It discloses neither content nor tenant: record_digest hashes salted parts,
// and tenant_tag is a MAC under the tenant's tag key.
//
// [Ledger] follows the journal and appends, [Reader] reads and proves, and
// [Reader.Handler] serves the directory to any tlog client. The directory is
// written by Tessera, which nothing else imports.
package ledger

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/transparency-dev/tessera"
	"github.com/transparency-dev/tessera/storage/posix"
	"k8s.io/klog/v2"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/durable"
	"aob.dev/writ/storage"
)

// CheckpointInterval is how often a growing log publishes a checkpoint.
const CheckpointInterval = 250 * time.Millisecond

// Batches: what the sequencer adds at once is at most one batch. An unfinished
// batch waits this long for more: each costs a dozen files and their syncs, which
// compete with those of the journal, and no leaf is shown before its checkpoint.
const (
	batchSize = 1024
	batchAge  = CheckpointInterval / 2
)

// Config of a ledger. All members but Held and Known are required.
type Config struct {
	Dir     string // made if missing
	Origin  string
	Key     intents.Signer // role ledger; may be intents.Rolling
	Secret  []byte         // tag secret, see CreateSecret
	Records storage.Records
	Log     *slog.Logger

	// Held reports that nothing is to be appended now; nil: never. Call Wake when that ends.
	Held func() bool

	// Known are the ledger keys of the log so far: the published checkpoint may
	// be signed by one that Key has followed. Nil: Key alone.
	Known func() []intents.Key
}

// Ledger appends a leaf for every record of the journal, in order, each exactly
// once. It never delays the journal: if it fails, proofs are late, intents are not.
type Ledger struct {
	*Reader
	*storage.Progress // how many leaves are integrated
	cfg               Config
	tags              Tags
	tenants           *Tenants

	append     tessera.AddFn
	integrated func(context.Context) (uint64, error)
	end        func() error // waits for the last checkpoint and ends what runs

	appending sync.Mutex // one appends at a time

	mu   sync.Mutex // guards halt
	halt error      // why the sequencer has stopped for good
}

// ErrAhead reports that the ledger has leaves whose records the journal does not have. The
// journal has been restored from a copy older than the ledger; nothing may be
// accepted, since positions that have been proved would be given out again.
var ErrAhead = errors.New("the ledger is ahead of the journal")

// ErrDiverged reports that a leaf is not the commitment to its record.
var ErrDiverged = errors.New("the ledger and the journal have diverged")

// CheckAhead compares the published size of a ledger's directory with the
// journal before anything is written to either. A missing ledger is fine.
func CheckAhead(dir string, next int64) error {
	text, err := os.ReadFile(filepath.Join(dir, "checkpoint")) //nolint:gosec // G304: the data directory
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	c, err := ReadCheckpoint(string(text))
	if err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	return ahead(c.Size, next)
}

func ahead(size, next int64) error {
	if size <= next {
		return nil
	}
	return fmt.Errorf("%w: it has %d leaves, the journal %d records. Put back a copy of the journal that was made after the ledger's "+
		"(backups copy the ledger first), or begin a new log in a new data directory: nothing is ever sequenced again", ErrAhead, size, next)
}

// Open opens or creates the ledger of a directory and compares its last leaf
// with its record. Tessera's goroutines run from here to Close; nothing is
// appended before Run. The error wraps ErrAhead or ErrDiverged where an operator
// must decide.
func Open(ctx context.Context, cfg Config) (*Ledger, error) {
	logTessera()
	signer, err := NoteSigner(cfg.Origin, cfg.Key)
	if err != nil {
		return nil, err
	}
	if err := durable.MkdirAll(cfg.Dir); err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	driver, err := posix.New(ctx, posix.Config{Path: cfg.Dir})
	if err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	l := &Ledger{
		Reader: NewReader(cfg.Dir, cfg.Origin), cfg: cfg, tags: NewTags(cfg.Secret, cfg.Origin), tenants: NewTenants(cfg.Records),
		Progress: storage.NewProgress(),
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	appender, shutdown, reader, err := tessera.NewAppender(ctx, driver, tessera.NewAppendOptions().
		WithCheckpointSigner(signer).WithCheckpointInterval(CheckpointInterval).WithBatching(batchSize, batchAge))
	if err != nil {
		cancel()
		return nil, damaged(err)
	}
	l.append, l.integrated = appender.Add, reader.IntegratedSize
	l.end = func() error {
		defer cancel()
		ctx, stop := context.WithTimeout(ctx, closeWait)
		defer stop()
		var err error
		if l.Err() == nil {
			err = l.catchUp(ctx)
		}
		return errors.Join(err, shutdown(ctx))
	}
	if err := l.resume(ctx); err != nil {
		cancel()
		return nil, damaged(err)
	}
	return l, nil
}

// damaged adds what to do about a ledger that does not open, if the error does not say it.
func damaged(err error) error {
	if errors.Is(err, ErrAhead) || errors.Is(err, ErrDiverged) || errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("ledger: it cannot be opened, and nothing was changed: %w. Find out who writes to the data directory (writ audit fsck), and restore a backup (writ admin restore BACKUP --data DIR)", err)
}

// closeWait is how long Close may take.
const closeWait = 5 * time.Second

// Close appends what is durable, waits until that is in a published checkpoint,
// and ends Tessera's goroutines. Run must have ended, and the journal be open.
func (l *Ledger) Close() error {
	if err := l.end(); err != nil {
		return fmt.Errorf("ledger: close: %w", err)
	}
	return nil
}

// Keys that the published checkpoint may be signed with.
func (l *Ledger) Keys() []intents.Key {
	if l.cfg.Known == nil {
		return []intents.Key{l.cfg.Key.VerificationKey()}
	}
	return l.cfg.Known()
}

// Size is how many leaves are integrated; a checkpoint may still be missing.
func (l *Ledger) Size() int64 { return l.Reached() }

// Err is set once the sequencer has halted: it found a leaf that is not the
// commitment to its record, and appends nothing any more.
func (l *Ledger) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.halt
}

// logTessera sends what Tessera logs to slog's default logger, warnings and worse:
// once, for the process.
var logTessera = sync.OnceFunc(func() {
	klog.SetSlogLogger(slog.New(warnings{slog.Default().Handler()}))
})

// warnings drops everything below a warning.
type warnings struct{ slog.Handler }

func (h warnings) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && h.Handler.Enabled(ctx, level)
}

func (h warnings) WithAttrs(attrs []slog.Attr) slog.Handler {
	return warnings{h.Handler.WithAttrs(attrs)}
}
func (h warnings) WithGroup(name string) slog.Handler { return warnings{h.Handler.WithGroup(name)} }
