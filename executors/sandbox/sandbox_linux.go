//go:build amd64 || arm64

package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"aob.dev/writ/internal/ratelimit"
)

// Signals by which judge distinguishes how a run ended.
const (
	sigPolicy = unix.SIGSYS
	sigCPU    = unix.SIGXCPU
)

// Sandbox runs jobs in sandboxes of one driver. It is safe for concurrent use.
type Sandbox struct {
	cfg    Config
	driver *linuxDriver
	host   *host
	pool   *pool
	places *ratelimit.Places // of runs, by tenant
	most   int64             // bytes that one run may take

	mu          sync.Mutex
	closed      bool           // guarded by mu; no run begins after it is set
	closeCalled bool           // guarded by mu; Close was called
	runs        sync.WaitGroup // Add under mu

	stopping context.Context // ends when no more runs may begin
	stop     context.CancelFunc
	cut      context.Context // ends when runs have to
	cutOff   context.CancelFunc
}

// Open prepares the runtime (some seconds the first time, then one start of
// python3), removes leftovers of a crash, and takes the first driver whose canary
// holds. Close must be called.
func Open(ctx context.Context, cfg Config) (*Sandbox, error) {
	cfg, err := cfg.normalize()
	if err != nil {
		return nil, err
	}
	h, err := openHost(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("open sandbox: %w", err)
	}
	driver, err := choose(ctx, h.drivers(), cfg.tried)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open sandbox: %w", err), h.close())
	}
	profile := Profile{Limits: cfg.Limits, Room: cfg.Limits.Scratch, Preload: []string{"json", "re"}}
	places, most := capacity(processors(), memoryLimit("/"), cfg.Limits.Memory+cfg.Limits.Scratch)
	s := &Sandbox{cfg: cfg, driver: driver, host: h, places: placesOf(cmp.Or(cfg.Concurrency, places)), most: most}
	s.stopping, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	s.cut, s.cutOff = context.WithCancel(context.WithoutCancel(ctx))
	s.pool = newPool(driver, profile, cfg.Workers, s.busy) //nolint:contextcheck // workers wait longer than Open
	return s, nil
}

// Driver is the name of the driver in use.
func (s *Sandbox) Driver() string { return s.driver.name }

// Python is the version of the interpreter in use.
func (s *Sandbox) Python() string { return s.host.runtime.image.Python }

// Run runs one job. It waits while Concurrency runs are under way, or all but one of them are of
// its tenant; waiting tenants take turns. Anything that the script does is in the Result. An error
// means that the script did not end by itself: ErrScript, ErrInputSize, ErrBusy, ErrClosed, the
// error of ctx or of the input, or a sandbox that could not be built. If a sandbox had taken the
// script, the Result has an Outcome then too.
func (s *Sandbox) Run(ctx context.Context, job Job) (Result, error) {
	if len(job.Script) > maxScript {
		return Result{}, ErrScript
	}
	profile, err := s.profile(job)
	if err != nil {
		return Result{}, err
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return Result{}, ErrClosed
	}
	s.runs.Add(1)
	s.mu.Unlock()
	defer s.runs.Done()

	leave, queued, err := s.await(ctx, job)
	if err != nil {
		return Result{}, err
	}
	inst, warm, err := s.take(profile)
	if err != nil {
		leave()
		return Result{}, err
	}
	defer s.release(inst, leave)
	ctx, cancel := s.bound(ctx, job.Time)
	defer cancel()
	res, err := inst.Run(ctx, job)
	res.Queued, res.Warm = queued, warm
	if s.cut.Err() != nil && errors.Is(err, context.Canceled) {
		err = ErrClosed
	}
	return res, err
}

// take returns a waiting sandbox, or a new one.
func (s *Sandbox) take(profile Profile) (inst *Instance, warm bool, err error) {
	if inst = s.pool.take(profile); inst != nil {
		return inst, true, nil
	}
	inst, err = s.driver.Start(profile)
	return inst, false, err
}

// release frees the place of a run. A sandbox that the kernel has not ended yet occupies it until
// its end.
func (s *Sandbox) release(inst *Instance, leave func()) {
	if !inst.alive() {
		leave()
		return
	}
	s.runs.Go(func() {
		_ = inst.Close() // the next session removes leftovers
		leave()
	})
}

// placesOf are places for runs. No tenant has all of them, so that the first run of another finds
// one or waits for the end of one run.
func placesOf(all int) *ratelimit.Places {
	share := max(1, all-1)
	return ratelimit.PlacesOf(ratelimit.Shares{All: all, Tenant: share, Key: share})
}

// maxWaiting bounds the waiting runs of one tenant. More would wait longer than their callers do,
// and each retains its intent and its input meanwhile.
const maxWaiting = 64

// await returns when the turn of job has come, and how long that took. leave ends the turn.
func (s *Sandbox) await(ctx context.Context, job Job) (leave func(), queued time.Duration, err error) {
	if s.places.WaitingOf(job.Tenant) >= maxWaiting {
		return nil, 0, ErrBusy
	}
	start := time.Now()
	wait, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	unbind := context.AfterFunc(s.stopping, func() { cancel(ErrClosed) }) //nolint:contextcheck // the sandbox ends the wait, too
	defer unbind()
	if job.Queue > 0 {
		var end context.CancelFunc
		wait, end = context.WithTimeoutCause(wait, job.Queue, ErrBusy)
		defer end()
	}
	left, err := s.places.Wait(wait, job.Tenant, "", 0)
	switch {
	case err != nil:
		return nil, 0, cmp.Or(ctx.Err(), context.Cause(wait))
	case s.stopping.Err() != nil: // its turn came in the same moment
		left()
		return nil, 0, ErrClosed
	}
	return func() {
		left()
		s.pool.refill()
	}, time.Since(start), nil
}

// bound is the context of a run that has its turn.
func (s *Sandbox) bound(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	unbind := context.AfterFunc(s.cut, cancel)
	if d == 0 {
		return ctx, func() { unbind(); cancel() }
	}
	ctx, timeout := context.WithTimeout(ctx, d)
	return ctx, func() { unbind(); timeout(); cancel() }
}

// Load is how many scripts run, and how many wait for their turn.
func (s *Sandbox) Load() (running, waiting int) { return s.places.Used(), s.places.Waiting() }

// busy reports whether there are runs for all processors, or no more to come.
func (s *Sandbox) busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed || s.places.Used() >= processors()
}

// WaitWarm returns when all prewarmed workers wait for a script, or with ctx's
// error.
func (s *Sandbox) WaitWarm(ctx context.Context) error { return s.pool.waitFull(ctx) }

// profile has the needs of the sandbox for job. An input that is large for the
// scratch gets its own room in addition.
func (s *Sandbox) profile(job Job) (Profile, error) {
	limits := s.cfg.Limits
	if job.Limits != (Limits{}) {
		var err error
		if limits, err = job.Limits.normalize(); err != nil {
			return Profile{}, err
		}
	}
	p := Profile{Limits: limits, Room: limits.Scratch}
	if job.InputSize > maxInput {
		return Profile{}, ErrInputSize
	}
	if job.InputSize > limits.Scratch/2 {
		p.Room += job.InputSize
	}
	if limits.Memory+p.Room > s.most {
		return Profile{}, ErrInputSize
	}
	return p, nil
}

// Stop starts no more sandboxes: waiting and new callers get ErrClosed. Runs under
// way have grace to end; then they are ended, also with ErrClosed. Stop does not
// wait; Close does.
func (s *Sandbox) Stop(grace time.Duration) {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.stop()
	time.AfterFunc(grace, s.cutOff)
}

// Close waits for the runs under way, ends the waiting workers and removes
// the scratch directories. The runtime stays for the next Open.
func (s *Sandbox) Close() error {
	s.mu.Lock()
	s.closed = true
	again := s.closeCalled
	s.closeCalled = true
	s.mu.Unlock()
	if again {
		return nil
	}
	s.runs.Wait()
	s.stop()
	s.cutOff()
	return errors.Join(s.pool.close(), s.host.close())
}
