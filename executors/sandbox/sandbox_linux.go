//go:build amd64 || arm64

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Signals by which judge tells one end from another.
const (
	sigPolicy = unix.SIGSYS
	sigCPU    = unix.SIGXCPU
)

// Sandbox runs jobs in boxes of one driver. It is safe for concurrent use.
type Sandbox struct {
	cfg    Config
	driver Driver
	host   *host
	pool   *pool
	queue  *queue

	mu     sync.Mutex
	closed bool           // guarded by mu; no run begins after it is set
	runs   sync.WaitGroup // Add under mu
}

// Open prepares the runtime (some seconds the first time, then one start of
// python3), removes what a crash left, and takes the first driver whose canary
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
	driver, err := choose(ctx, h.drivers(), cfg.Drivers)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open sandbox: %w", err), h.close())
	}
	profile := Profile{Limits: cfg.Limits, Room: cfg.Limits.Scratch, Preload: cfg.Preload}
	s := &Sandbox{cfg: cfg, driver: driver, host: h, queue: newQueue(cfg.Concurrency)}
	s.pool = newPool(driver, profile, cfg.Workers, s.busy) //nolint:contextcheck // workers wait longer than Open
	return s, nil
}

func openHost(ctx context.Context, cfg Config) (*host, error) {
	base, err := chooseBase(cfg.Dir)
	if err != nil {
		return nil, err
	}
	sweepBase(base, time.Now()) //nolint:contextcheck // bounded by itself
	h := &host{}
	if h.runtime, err = findRuntime(ctx, base, cfg.Python); err != nil {
		return nil, err
	}
	if os.Geteuid() == 0 {
		if h.ids, err = newIDRange(); err != nil {
			return nil, err
		}
	}
	if h.scratch, err = newScratch(h.runtime.path); err != nil { //nolint:contextcheck // as above
		return nil, err
	}
	h.spawner, h.offline, h.mounts = newSpawner(false), newSpawner(true), newMounts()
	return h, nil
}

func (h *host) close() error {
	h.spawner.close()
	h.offline.close()
	h.mounts.close()
	return h.scratch.close()
}

// Driver is the name of the driver in use.
func (s *Sandbox) Driver() string { return s.driver.Name() }

// Python is the version of the interpreter in use.
func (s *Sandbox) Python() string { return s.host.runtime.image.Python }

// Run runs one job and returns what became of it. It waits while Concurrency
// runs are under way; tenants that wait take turns. Whatever the script does is in the Result; an error
// means that there is none: ErrScript, ErrInputSize, ErrClosed, the error of
// ctx or of the input, or a box that could not be built.
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

	if err := s.queue.enter(ctx, job.Tenant); err != nil {
		return Result{}, err
	}
	defer func() {
		s.queue.leave()
		s.pool.refill()
	}()
	box := s.pool.take(profile)
	warm := box != nil
	if !warm {
		if box, err = s.driver.Start(profile); err != nil {
			return Result{}, err
		}
	}
	res, err := box.Run(ctx, job)
	res.Warm = warm
	return res, err
}

// busy reports whether there are runs for all processors.
func (s *Sandbox) busy() bool { return s.queue.running() >= runtime.NumCPU() }

// WaitWarm returns when all prewarmed workers wait for a script, or with ctx's
// error.
func (s *Sandbox) WaitWarm(ctx context.Context) error { return s.pool.waitFull(ctx) }

// profile is what the box for job needs. An input that is large for the
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
	return p, nil
}

// Close waits for the runs under way, ends the waiting workers and removes
// the scratch directories. The runtime stays for the next Open.
func (s *Sandbox) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.mu.Unlock()
	s.runs.Wait()
	return errors.Join(s.pool.close(), s.host.close())
}
