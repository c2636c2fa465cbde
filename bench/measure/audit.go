package measure

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/metrics"
	"time"

	"aob.dev/writ/audit"
)

// DefaultIntents of the log that audit verifies.
const DefaultIntents = 10_000

// mebibytes that an audit may need, however long the log (the goal).
const auditMemory = 1 << 10

// audited makes a log of o.Intents decisions and measures its verification with
// and without replay, and the backtest of a policy on it, beside as many bare
// signatures on all processors; and the opening of its journal.
func audited(ctx context.Context, o Options) ([]Row, error) {
	return within(func(dir string) ([]Row, error) {
		log, err := makeLog(ctx, dir, o.Intents)
		if err != nil {
			return nil, err
		}
		return log.measure(ctx, o.Time)
	})
}

func (m madeLog) measure(ctx context.Context, d time.Duration) ([]Row, error) {
	bare, err := bareVerify(ctx, d)
	if err != nil {
		return nil, err
	}
	var rows []Row
	for _, replay := range []bool{false, true} {
		name := "verify"
		if replay {
			name = "verify and replay"
		}
		runtime.GC()
		peak := watchHeap()
		r, err := m.verify(ctx, replay)
		top := peak()
		if err != nil {
			return nil, err
		}
		rows = append(rows,
			newRow(name+" / ed25519.Verify on all processors", float64(r.Intents)/r.Seconds, bare, "decisions per second", r.Intents),
			newRow(name+", peak heap / 1 GiB", top, auditMemory, "MiB", r.Records))
	}
	tried, err := m.backtest(ctx, bare)
	if err != nil {
		return nil, err
	}
	opened, err := m.opening(ctx)
	return append(append(rows, tried...), opened), err
}

func (m madeLog) verify(ctx context.Context, replay bool) (r audit.Report, err error) {
	err = m.read(func(f *os.File) (err error) {
		r, err = audit.Verify(ctx, f, audit.Options{Trust: m.trust, Replay: replay})
		return err
	})
	if err == nil && (!r.OK || r.Intents < m.intents || replay && r.Replayed == 0) {
		err = fmt.Errorf("%d intents were made: %v", m.intents, r)
	}
	return r, err
}

// read opens the bundle for a batch, as the commands do.
func (m madeLog) read(fn func(*os.File) error) error {
	restore := audit.Roomy()
	defer restore()
	f, err := os.Open(m.bundle)
	if err != nil {
		return err
	}
	return errors.Join(fn(f), f.Close())
}

// bareVerify is how many signatures over 1.5 kB all processors verify a second.
func bareVerify(ctx context.Context, d time.Duration) (float64, error) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return 0, err
	}
	msg := make([]byte, 1500)
	sig := ed25519.Sign(private, msg)
	l := &lane{callers: runtime.GOMAXPROCS(0), do: func(context.Context, int) error {
		ed25519.Verify(public, msg, sig)
		return nil
	}}
	err = race(ctx, d, l)
	return l.rate(), err
}

// heapLook is how often the heap is looked at.
const heapLook = 50 * time.Millisecond

// watchHeap follows the bytes of the heap, until peak is called for the most, in MiB.
func watchHeap() (peak func() float64) {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	stop, most := make(chan struct{}), make(chan uint64)
	go func() {
		look := time.NewTicker(heapLook)
		defer look.Stop()
		var top uint64
		for {
			metrics.Read(sample)
			top = max(top, sample[0].Value.Uint64())
			select {
			case <-look.C:
			case <-stop:
				most <- top
				return
			}
		}
	}()
	return func() float64 {
		close(stop)
		return float64(<-most) / (1 << 20)
	}
}
