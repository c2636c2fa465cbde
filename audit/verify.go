package audit

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/storage/ledger"
)

// ErrMalformed reports that what was read is no bundle at all.
var ErrMalformed = errors.New("not a bundle")

// Options of a verification.
type Options struct {
	Trust   *Trust // nil: the bundle only has to agree with itself
	Replay  bool   // decide every intent again
	Workers int    // 0: one per processor
	// Progress is called with the number of records read and of all; may be nil.
	Progress func(done, total int64)
}

// Verify reads a bundle once, from beginning to end, and reports whether it is valid.
// It needs no network, no server and no data directory, and retains of the bundle
// only what later records depend on. An invalid bundle is no error:
// Report names its first bad record. The error is ErrMalformed for what is no
// bundle, the reader's, or the context's.
//
// Lines are decoded and signatures verified in parallel; in between one
// goroutine applies the records in order, since what a record is checked against
// follows from those before it.
func Verify(ctx context.Context, r io.Reader, o Options) (Report, error) {
	started := time.Now()
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	v := &verifier{opts: o, applier: newApplier(), lines: newLines(r), replayer: newReplayer(nil)}
	v.applier.content = v.replayer.content
	if o.Replay {
		v.applier.inputs = newContents(func(_, digest string) ([]byte, error) { return v.replayer.content(digest) })
	}
	defer func() { v.report.Seconds = since(started) }()
	if err := v.header(); err != nil {
		return v.report, err
	}
	if v.bad == nil {
		if err := v.run(ctx); err != nil {
			return v.report, err
		}
	}
	v.finish()
	v.report.Seconds, v.report.ClockSteps = since(started), v.applier.steps
	return v.report, nil
}

// verifier is one verification.
type verifier struct {
	opts    Options
	lines   *lines
	head    Header
	first   ledger.Checkpoint // signatures are checked at the end, when all keys are known
	last    ledger.Checkpoint
	applier *applier

	tile  *Tile // the last one, which the log has
	next  int64 // position after the last item
	gaps  bool
	ended bool
	tag   string // of the tenant, where the bundle carries its tag key
	// tagged: a signed intent of the tenant has that tag. Without one nothing
	// shows that the key is the tenant's.
	tagged atomic.Bool

	grants   intents.Grants
	replayer *replayer

	mu     sync.Mutex // guards what follows
	bad    *Bad
	report Report
}

// fail remembers the first bad record.
func (v *verifier) fail(position int64, id string, reason string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if b := (&Bad{position, id, reason}); b.before(v.bad) {
		v.bad = b
	}
}

func (v *verifier) failed() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.bad != nil
}

// header reads the first line and holds it to what the auditor has pinned.
func (v *verifier) header() error {
	raw, err := v.lines.next()
	if err != nil && !errors.Is(err, errCut) {
		return err
	}
	l, derr := decodeLine(raw)
	if err != nil || derr != nil || l.Bundle == nil {
		return fmt.Errorf("%w: it does not begin with a bundle's header", ErrMalformed)
	}
	h := *l.Bundle
	if h.V != Version {
		return fmt.Errorf("%w: version %d, this program knows %d", ErrMalformed, h.V, Version)
	}
	v.head, v.applier.origin = h, h.Origin
	v.report.Origin, v.report.Tenant, v.report.From, v.report.Size = h.Origin, h.Tenant, h.From, h.Size
	var err1, err2 error
	v.first, err1 = ledger.ReadCheckpoint(h.First)
	v.last, err2 = ledger.ReadCheckpoint(h.Last)
	switch {
	case err1 != nil || err2 != nil:
		v.fail(-1, "", "a checkpoint of the header cannot be read")
	case v.first.Origin != h.Origin || v.last.Origin != h.Origin:
		v.fail(-1, "", "a checkpoint is another log's")
	case v.last.Size != h.Size || h.From < 0 || h.From > h.Size:
		v.fail(-1, "", "the header does not say how many records the last checkpoint has")
	case ledger.VerifyConsistency(v.first, v.last, h.Consistency) != nil:
		v.fail(-1, "", "the last checkpoint's log is no continuation of the first one's: something was changed or cut off")
	}
	if len(h.TagKey) > 0 && h.Tenant != "" {
		v.tag = ledger.Tag(h.TagKey, h.Origin)
	}
	if v.bad == nil {
		v.cosigned()
	}
	v.pinned()
	return nil
}

// pinned holds the header to the trust file.
func (v *verifier) pinned() {
	t := v.opts.Trust
	if t == nil {
		return
	}
	v.report.Anchored, v.applier.root = true, t.public
	if t.Origin != v.head.Origin {
		v.fail(-1, "", "the bundle is of another log than the pinned one")
		return
	}
	if t.Checkpoint == "" {
		return
	}
	seen, err := ledger.ReadCheckpoint(t.Checkpoint)
	switch {
	case err != nil || seen.Origin != t.Origin:
		v.fail(-1, "", "the pinned checkpoint cannot be read, or is another log's")
	case seen.Size < 1:
		v.fail(-1, "", "the pinned checkpoint is of an empty log, which every log continues: pin a later one")
	case seen.Size > v.last.Size:
		v.fail(-1, "", fmt.Sprintf("the bundle is cut short: it ends at %d records, and the pinned checkpoint has %d", v.last.Size, seen.Size))
	case seen.Size == v.last.Size && string(seen.Root) != string(v.last.Root), seen.Size == v.first.Size && string(seen.Root) != string(v.first.Root):
		v.fail(-1, "", "the log has another past than the pinned checkpoint's")
	case seen.Size != v.last.Size && seen.Size != v.first.Size:
		v.fail(-1, "", fmt.Sprintf("the bundle shows no way from the pinned checkpoint of %d records: export it with --since-checkpoint", seen.Size))
	}
}

// finish completes the report with what is known only at the end.
func (v *verifier) finish() {
	if v.bad == nil {
		v.closing()
	}
	if v.bad == nil {
		for _, m := range v.applier.unexplained() {
			v.fail(m.position, m.intentID, m.reason())
		}
	}
	r := &v.report
	if v.applier.keys != nil {
		r.KeySet = v.applier.keys.version
	}
	if r.FirstBad, r.OK = v.bad, v.bad == nil; !r.OK {
		r.Next = v.opts.next(v.head.Origin)
	}
	r.Witnessed = r.OK && r.WitnessedSize == v.head.Size && r.WitnessedSize > 0
	r.Complete = r.OK && v.head.Complete && !v.gaps && v.next == v.head.Size && (v.head.Tenant == "" || v.tagged.Load())
	r.Replayed, r.Why = v.replayer.count()
	for _, n := range r.Why {
		r.Unreplayable += n
	}
}

func (v *verifier) closing() {
	switch {
	case !v.ended:
		v.fail(v.next, "", "the bundle is cut short: its last line is missing")
	case v.applier.keys == nil:
		v.fail(-1, "", "the bundle has no records")
	case v.head.Complete && (v.gaps || v.next != v.head.Size):
		v.fail(-1, "", "the bundle says that it is complete, and has not every position")
	}
	signed := [][2]string{{"first", v.head.First}, {"last", v.head.Last}}
	if t := v.opts.Trust; t != nil && t.Checkpoint != "" {
		signed = append(signed, [2]string{"pinned", t.Checkpoint})
	}
	for _, c := range signed {
		if _, err := v.openCheckpoint(c[1]); err != nil {
			v.fail(-1, "", "the "+c[0]+" checkpoint is not signed by a ledger key of the key set")
		}
	}
	v.witnessed()
}

// end holds the bundle to its last line.
func (v *verifier) end(e *End, before int64, sum []byte) {
	v.ended = true
	if e.Lines != before || e.SHA256 != hex.EncodeToString(sum) {
		v.fail(-1, "", "the bundle is not what was written: its last line gives other bytes")
	}
}
