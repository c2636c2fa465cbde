package measure

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"aob.dev/writ/bench/scale"
	"aob.dev/writ/intents"
)

// cellIntents are submitted at once by cellCallers in each turn.
const (
	cellIntents = 256
	cellCallers = 64
	cellServers = 3 // of the journal
)

// cell measures what the parts of a cell spend on an intent: the CPU of router and executor
// beside bare ed25519.Verify, in turns; what a log of o.Intents comes to and what it takes
// to follow it; and groups of commits of that size, as one message of three servers on
// this machine, beside bare fdatasync of as many bytes.
func cell(ctx context.Context, o Options) (rows []Row, err error) {
	for _, part := range []func(context.Context, string, Options) ([]Row, error){measureCPU, logged} {
		more, err := within(func(dir string) ([]Row, error) { return part(ctx, dir, o) })
		if err != nil {
			return nil, err
		}
		rows = append(rows, more...)
	}
	commit := int(rows[len(rows)-1].Measured / rows[len(rows)-1].Ratio) // see logged
	groups, err := within(func(dir string) ([]Row, error) { return grouped(ctx, dir, o.Time, commit) })
	return append(rows, groups...), err
}

// measureCPU is the CPU of an intent in a router that is answered at once, and what it takes
// more over NATS, with an executor that verifies its tickets.
func measureCPU(ctx context.Context, dir string, o Options) (rows []Row, err error) {
	alone, err := newWorld(ctx, filepath.Join(dir, "alone"), time.Now)
	defer func() { err = errors.Join(err, alone.close()) }()
	if err != nil {
		return nil, err
	}
	if err := alone.start(ctx, answering{}, intentTurns); err != nil {
		return nil, err
	}
	whole, err := newWorld(ctx, filepath.Join(dir, "whole"), time.Now)
	defer func() { err = errors.Join(err, whole.close()) }()
	if err != nil {
		return nil, err
	}
	stop, err := whole.overNATS(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, err
	}
	message := make([]byte, recordBytes/2)
	sig := ed25519.Sign(private, message)
	took, err := inTurns(ctx, o.Time, func() (float64, error) {
		return block(cellIntents, func(int) error { return signature{public, message, sig}.verify() })
	}, func() (float64, error) {
		return block(cellIntents, func(int) error { ed25519.Sign(private, message); return nil })
	}, alone.decision(ctx), alone.cpu(ctx), whole.cpu(ctx))
	if err != nil {
		return nil, err
	}
	verify, n := median(took[0]), int64(len(took[0])*cellIntents)
	router := median(took[3])
	return []Row{
		newRow(scale.Decision, median(took[2]), verify, "µs CPU", n),
		newRow(scale.Signature, median(took[1]), verify, "µs CPU", n),
		newRow(scale.Router, router, verify, "µs CPU", n),
		newRow(scale.Executor, max(median(took[4])-router, 1), verify, "µs CPU", n),
	}, nil
}

// decision is a figure for inTurns: what it takes to decide such intents, and no more.
func (w *world) decision(ctx context.Context) func() (float64, error) {
	return func() (float64, error) {
		signed, err := w.signLines(cellIntents)
		if err != nil {
			return 0, err
		}
		return block(len(signed), func(i int) error {
			code, err := w.router.Decide(ctx, signed[i])
			if err == nil && code != intents.OK {
				err = fmt.Errorf("intent %d is decided %s", i, code)
			}
			return errors.Join(err, ctx.Err())
		})
	}
}

// cpu is a figure for inTurns: the microseconds of process CPU of an intent.
func (w *world) cpu(ctx context.Context) func() (float64, error) {
	l := w.lane(cellCallers)
	return func() (float64, error) {
		if err := l.prepare(cellIntents); err != nil {
			return 0, err
		}
		start := cpuTime()
		err := together(l.callers, func(caller int) (bool, error) {
			err := l.do(ctx, caller)
			if errors.Is(err, errUsedUp) {
				return false, nil
			}
			return true, errors.Join(err, ctx.Err())
		})
		return float64((cpuTime() - start).Microseconds()) / cellIntents, err
	}
}

// grouped publishes messages of so many commits to a stream of three servers, in turns
// with syncing as many bytes to a file.
func grouped(ctx context.Context, dir string, d time.Duration, commit int) (rows []Row, err error) {
	js, err := startSyncAlways(ctx, filepath.Join(dir, "jetstream"), cellServers)
	if err != nil {
		return nil, err
	}
	defer js.close()
	for _, size := range scale.GroupSizes {
		message := make([]byte, size*commit)
		sync, closing, err := syncs(dir, len(message))
		if err != nil {
			return nil, err
		}
		took, err := inTurns(ctx, d/time.Duration(len(scale.GroupSizes)),
			timed(func() error { return sync.do(ctx, 0) }), timed(func() error { return js.publish(ctx, message) }))
		if err := errors.Join(err, closing()); err != nil {
			return nil, err
		}
		rows = append(rows, newRow(scale.Group(size), median(took[1]), median(took[0]), "ms", int64(len(took[1]))))
	}
	return rows, nil
}
