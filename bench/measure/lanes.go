package measure

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

// recordBytes is about the size of an intent with grant, decision and facts.
const recordBytes = 2500

// windows is how many turns each lane gets.
const windows = 8

// lane is one thing that is measured in turns with others.
type lane struct {
	callers int
	// prepare, if not nil, readies for a window in which about n operations are expected.
	prepare func(n int) error
	// do is one operation of a caller. It returns errUsedUp if nothing is left of what was
	// prepared.
	do func(ctx context.Context, caller int) error

	rates []float64     // operations per second of each window
	n     int64         // operations in all
	cpu   time.Duration // that this process spent in the windows
}

var errUsedUp = errors.New("what was prepared is used up")

func (l *lane) rate() float64 { return median(l.rates) }

// race measures the lanes in turns, each for so long in all.
func race(ctx context.Context, each time.Duration, lanes ...*lane) error {
	for range windows {
		for _, l := range lanes {
			if err := l.window(ctx, each/windows); err != nil {
				return err
			}
		}
	}
	return nil
}

// firstGuess of what a lane does per second, before it was measured.
const firstGuess = 2000.0

// window lets all callers work for about d, at least once each.
func (l *lane) window(ctx context.Context, d time.Duration) error {
	if l.prepare != nil {
		expected := firstGuess
		if len(l.rates) > 0 {
			expected = l.rates[len(l.rates)-1]
		}
		if err := l.prepare(max(int(1.2*expected*d.Seconds()), 2*l.callers)); err != nil {
			return err
		}
	}
	var n atomic.Int64
	start, cpu := time.Now(), cpuTime()
	err := together(l.callers, func(caller int) (bool, error) {
		err := l.do(ctx, caller)
		if errors.Is(err, errUsedUp) {
			return false, nil
		}
		if err == nil {
			n.Add(1)
		}
		return time.Since(start) < d, errors.Join(err, ctx.Err())
	})
	l.rates = append(l.rates, float64(n.Load())/time.Since(start).Seconds())
	l.n, l.cpu = l.n+n.Load(), l.cpu+cpuTime()-cpu
	return err
}

// each is the CPU time of one operation, in milliseconds.
func (l *lane) each() float64 { return l.cpu.Seconds() * 1000 / float64(l.n) }

// together has callers do something at once, each again and again until it says that
// it is enough, or fails.
func together(callers int, do func(caller int) (more bool, err error)) error {
	failed := make([]error, callers)
	var running sync.WaitGroup
	for i := range failed {
		running.Go(func() {
			for more := true; more && failed[i] == nil; {
				more, failed[i] = do(i)
			}
		})
	}
	running.Wait()
	return errors.Join(failed...)
}

// minRounds is how often everything is measured at least, however short the time.
const minRounds = 3

// inTurns takes figures in turns for about d, and returns those of each in a list.
func inTurns(ctx context.Context, d time.Duration, take ...func() (float64, error)) ([][]float64, error) {
	figures := make([][]float64, len(take))
	until := time.Now().Add(d)
	for len(figures[0]) < minRounds || time.Now().Before(until) {
		for i, one := range take {
			f, err := one()
			if err := errors.Join(err, ctx.Err()); err != nil {
				return nil, err
			}
			figures[i] = append(figures[i], f)
		}
	}
	return figures, nil
}

// timed is a figure for inTurns: how many milliseconds something takes.
func timed(do func() error) func() (float64, error) {
	return func() (float64, error) {
		start := time.Now()
		err := do()
		return sinceMS(start), err
	}
}

func sinceMS(start time.Time) float64 { return float64(time.Since(start).Microseconds()) / 1000 }

// syncs appends records of a size to a file, one fdatasync each.
func syncs(dir string, size int) (l *lane, closing func() error, err error) {
	f, err := os.CreateTemp(dir, "bare-")
	if err != nil {
		return nil, nil, err
	}
	record := make([]byte, size)
	return &lane{callers: 1, do: func(context.Context, int) error {
		_, err := f.Write(record)
		return errors.Join(err, syncData(f))
	}}, f.Close, nil
}

// against makes the rows of lanes that do the same at so many callers, each
// beside bare syncs and beside JetStream with as many callers.
func against(ctx context.Context, dir string, each time.Duration, name string, ours ...*lane) (rows []Row, err error) {
	bare, closing, err := syncs(dir, recordBytes)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, closing()) }()
	js, err := startSyncAlways(ctx, filepath.Join(dir, "jetstream"), 1)
	if err != nil {
		return nil, err
	}
	defer js.close()
	record := make([]byte, recordBytes)
	publish := func(ctx context.Context, _ int) error { return js.publish(ctx, record) }
	lanes := []*lane{bare}
	var theirs []*lane
	for _, l := range ours {
		other := &lane{callers: l.callers, do: publish}
		theirs = append(theirs, other)
		lanes = append(lanes, l, other)
	}
	if err := race(ctx, each, lanes...); err != nil {
		return nil, err
	}
	for i, l := range ours {
		at := name + ", " + callers(l.callers)
		rows = append(rows,
			newRow(at+" / fdatasync", l.rate(), bare.rate(), "per second", l.n),
			newRow(at+" / JetStream sync-always", l.rate(), theirs[i].rate(), "per second", l.n))
	}
	return rows, nil
}
