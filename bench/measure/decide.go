package measure

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"aob.dev/writ/intents"
	"aob.dev/writ/policies"
	"aob.dev/writ/router"
)

// The intents of a block come from so many turns, each with a grant of its own;
// every user has asked turnsPerUser times.
const (
	decideTurns  = 32
	turnsPerUser = 4
)

// decide measures decisions in blocks. Each block decides every intent once with
// a new router, which remembers neither policy decisions nor grants: what it
// saves is what this traffic repeats. Verify, decide and decide without the memo
// take turns, and the medians of their blocks are compared.
//
// All of it runs on one core, the collector too: beside a second one that is idle
// the collector would mark on it for nothing, and be charged for it.
func decide(ctx context.Context, o Options) ([]Row, error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	return within(func(dir string) ([]Row, error) {
		w, err := newWorld(ctx, dir, ticking(time.Now()))
		if err != nil {
			return nil, err
		}
		rows, err := w.decide(ctx, o)
		return rows, errors.Join(err, w.close())
	})
}

// ticking is a clock that moves a millisecond with each look, and never past
// what the intents and grants of a run live.
func ticking(start time.Time) func() time.Time {
	var looks atomic.Int64
	return func() time.Time { return start.Add(time.Duration(looks.Add(1)%60_000) * time.Millisecond) }
}

func (w *world) decide(ctx context.Context, o Options) ([]Row, error) {
	if err := w.start(ctx, nil, decideTurns); err != nil {
		return nil, err
	}
	raws, err := w.signMix()
	if err != nil {
		return nil, err
	}
	signed, err := w.signingInputs(raws)
	if err != nil {
		return nil, err
	}
	forgetful := w.config
	forgetful.Policy = policies.NewLive(w.config.Policy.Engine().Forgetful())
	var d decideTimes
	var again []float64
	took, err := inTurns(ctx, o.Time, func() (float64, error) {
		return block(len(signed), func(i int) error { return signed[i].verify() })
	}, func() (_ float64, err error) {
		d, err = decideAll(ctx, w.config, raws)
		again = append(again, d.repeated)
		return d.first, err
	}, func() (float64, error) {
		asked, err := decideAll(ctx, forgetful, raws)
		return asked.first, err
	})
	if err != nil {
		return nil, err
	}
	n := int64(len(again) * len(raws))
	base := median(took[0])
	return []Row{
		newRow("decide", median(took[1]), base, "µs CPU", n),
		newRow("decide, all remembered", median(again), base, "µs CPU", n),
		newRow("decide, every policy evaluated", median(took[2]), base, "µs CPU", n),
		newRow("policy decisions remembered", float64(d.hits), float64(d.hits+d.misses), "decisions", int64(len(raws))),
	}, nil
}

// decideTimes is what deciding all intents took, in microseconds for one.
type decideTimes struct {
	first, repeated float64
	hits, misses    int64 // of the policy memo, the first time
}

// decideAll decides every intent with a router of its own, and then again: what
// a router spends that has seen such intents of these users and grants before.
func decideAll(ctx context.Context, config router.Config, raws [][]byte) (d decideTimes, err error) {
	r, err := router.New(config)
	if err != nil {
		return d, err
	}
	one := func(i int) error {
		code, err := r.Decide(ctx, raws[i])
		if err == nil && code != intents.OK {
			err = fmt.Errorf("intent %d is decided %s", i, code)
		}
		return err
	}
	if err := one(0); err != nil { // the directory's data is laid out for the policy once
		return d, err
	}
	hits, misses := r.MemoStats()
	if d.first, err = block(len(raws), one); err != nil {
		return d, err
	}
	d.hits, d.misses = r.MemoStats()
	d.hits, d.misses = d.hits-hits, d.misses-misses
	if d.repeated, err = block(len(raws), one); err != nil {
		return d, err
	}
	return d, ctx.Err()
}

// signature is what a bare ed25519.Verify is given.
type signature struct {
	key        ed25519.PublicKey
	input, sig []byte
}

func (s signature) verify() error {
	if !ed25519.Verify(s.key, s.input, s.sig) {
		return errors.New("a signed intent does not verify")
	}
	return nil
}

func (w *world) signingInputs(raws [][]byte) ([]signature, error) {
	v := intents.Verifier{Keys: w.config.State.View(), Origin: w.config.State.Origin(), Now: w.config.Now()}
	out := make([]signature, len(raws))
	for i, raw := range raws {
		u, err := intents.Parse(raw)
		if err != nil {
			return nil, err
		}
		e, err := u.Verify(v)
		if err != nil {
			return nil, err
		}
		sig, err := base64.RawURLEncoding.DecodeString(e.Sig())
		if err != nil {
			return nil, err
		}
		out[i] = signature{e.Signer().Public, []byte(e.Header() + "." + base64.RawURLEncoding.EncodeToString(e.Canonical())), sig}
	}
	return out, nil
}

// block runs fn n times and gives the microseconds of process CPU per call, the
// collector's included: the blocks are long enough that it comes in nearly each
// that leaves garbage.
func block(n int, fn func(i int) error) (micros float64, err error) {
	start := cpuTime()
	for i := range n {
		if err := fn(i); err != nil {
			return 0, err
		}
	}
	return float64(cpuTime()-start) / float64(time.Microsecond) / float64(n), nil
}

// cpuTime is what this process has used of the processors, in user and system mode.
func cpuTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0 // never for RUSAGE_SELF
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
