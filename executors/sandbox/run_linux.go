//go:build amd64 || arm64

package sandbox

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// chunkSize is the unit in which input crosses the pipe, in bytes: the most that the parent ever
// buffers.
const chunkSize = 256 << 10

// feedPipe is the desired capacity of the pipe of a large input, in bytes: the most that a user may
// request.
const feedPipe = 1 << 20

// Run gives job to the sandbox, waits for its end and closes the sandbox. The limits are those that
// the sandbox was built with. If the kernel takes long to end a killed sandbox, Run returns
// earlier, and the sandbox is still alive and not closed.
//
// An error means that the script did not end by itself: ctx ended, the input could not
// be read or did not fit, or the sandbox was broken or could not be built. If the
// sandbox had taken the script by then, the result has Outcome Canceled, NoInput or
// Crash; else it is empty.
func (b *Instance) Run(ctx context.Context, job Job) (res Result, err error) {
	defer func() {
		if b.alive() {
			return // the kernel has not ended it yet
		}
		err = errors.Join(err, b.Close())
	}()
	end := &ending{kill: b.kill, killed: make(chan struct{})}
	if job.InputSize > chunkSize {
		widen(b.feed)
	}
	// Python may still start: the script is there when it asks.
	var sent int64
	var feedErr error
	var feeder sync.WaitGroup
	feeder.Go(func() {
		if sent, feedErr = feed(b.feed, job); feedErr != nil {
			end.by(NoInput)
		}
		b.feed.Close()
	})
	if err := b.awaitReady(ctx); err != nil {
		b.Close()
		feeder.Wait()
		switch {
		case end.reason() == NoInput:
			return b.account(job, noInput, Result{ExitCode: -1}), fmt.Errorf("read input: %w", feedErr)
		case errors.Is(err, errBuild):
			return Result{}, err
		}
		// It may have begun just after the wait for it ended.
		return b.account(job, canceled, Result{ExitCode: -1}), err
	}

	start := time.Now()
	stopCtx := context.AfterFunc(ctx, func() { end.by(Canceled) })
	defer stopCtx()
	wall := time.AfterFunc(b.limits.Wall, func() { end.by(Timeout) })
	defer wall.Stop()

	budget := &budget{left: b.limits.Output, exceeded: func() { end.by(OversizedOutput) }}
	out, stderr := &capture{budget: budget, max: b.limits.Output}, &capture{budget: budget, max: 0, also: job.Stderr}
	report := &capture{max: reportMax}
	var readers sync.WaitGroup
	readers.Go(func() { out.drain(b.out) })
	readers.Go(func() { stderr.drain(b.errs) })
	readers.Go(func() { report.drain(b.report) })

	watched, unwatch := context.WithCancel(context.WithoutCancel(ctx))
	go b.watch(watched, func() { end.by(Memory) })
	lingers := !b.awaitEnd(end)
	unwatch()
	duration := time.Since(start)
	_ = b.feed.SetWriteDeadline(time.Unix(1, 0)) // nobody reads it
	cut(b.out, b.errs, b.report)
	readers.Wait()
	feeder.Wait()

	ended := exit{code: -1}
	switch {
	case lingers: // the reason why it was killed decides
	case b.waitErr != nil:
		return b.account(job, verdict{outcome: Crash}, Result{Duration: duration, ExitCode: -1}), nil // Close reports it
	default:
		ended = b.ended()
	}
	verdict := judge(end.reason(), ended, report.kept, b.limits)
	switch verdict.outcome {
	case Canceled:
		err = ctx.Err()
	case NoInput:
		err = fmt.Errorf("%w: %s", ErrInputSize, verdict.text)
		if feedErr != nil {
			err = fmt.Errorf("read input: %w", feedErr)
		}
	default:
	}
	return b.account(job, verdict, Result{
		Output: out.kept, Duration: duration, CPU: ended.cpu, ExitCode: ended.code, InputBytes: sent,
	}), err
}

// killGrace is how long a killed sandbox may take to end before Run returns without it.
// Where memory is short the kernel takes long, and a run would exceed its limits.
const killGrace = time.Second

// awaitEnd returns when the process ended; false: it was killed and lingers.
func (b *Instance) awaitEnd(e *ending) bool {
	select {
	case <-b.exited:
		return true
	case <-e.killed:
	}
	grace := time.NewTimer(killGrace)
	defer grace.Stop()
	select {
	case <-b.exited:
		return true
	case <-grace.C:
		return false
	}
}

// account completes a result with its verdict, script and sandbox.
func (b *Instance) account(job Job, v verdict, res Result) Result {
	sum := sha256.Sum256([]byte(job.Script))
	res.Outcome, res.Limit, res.Error = v.outcome, v.limit, v.text
	res.ScriptSHA256, res.Driver, res.Python = hex.EncodeToString(sum[:]), b.driver, b.python
	return res
}

// widen enlarges a pipe. The kernel refuses if the user has many pipes; then the run is only
// slower.
func widen(pipe *os.File) {
	if c, err := pipe.SyscallConn(); err == nil {
		_ = c.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, feedPipe) })
	}
}

// feed writes script and input in the framing of boot.py and returns the input
// bytes written. The sandbox may end at any time, which is not an error here.
func feed(w io.Writer, job Job) (int64, error) {
	frame := binary.BigEndian.AppendUint32(nil, uint32(len(job.Script))) //nolint:gosec // G115: within range
	frame = append(frame, job.Script...)
	if job.Input == nil {
		_, _ = w.Write(append(frame, 0))
		return 0, nil
	}
	if _, err := w.Write(append(frame, 1)); err != nil {
		return 0, nil //nolint:nilerr // the sandbox ended
	}
	var sent int64
	buf := make([]byte, 4+chunkSize)
	for {
		n, err := io.ReadFull(job.Input, buf[4:])
		if n > 0 {
			binary.BigEndian.PutUint32(buf, uint32(n)) //nolint:gosec // G115: within range
			if _, err := w.Write(buf[:4+n]); err != nil {
				return sent, nil //nolint:nilerr // the sandbox ended
			}
			sent += int64(n)
		}
		switch {
		case err == io.EOF || err == io.ErrUnexpectedEOF:
			_, _ = w.Write([]byte{0, 0, 0, 0})
			return sent, nil
		case err != nil:
			return sent, err
		}
	}
}

// ending records the parent's first reason for ending a run.
type ending struct {
	kill   func()
	killed chan struct{} // closed after kill

	mu    sync.Mutex
	first Outcome
}

func (e *ending) by(o Outcome) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.first == "" {
		e.first = o
		e.kill()
		close(e.killed)
	}
}

func (e *ending) reason() Outcome {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.first
}

// budget counts bytes over several captures.
type budget struct {
	mu       sync.Mutex
	left     int64
	exceeded func()
}

func (b *budget) spend(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.left -= int64(n); b.left < 0 {
		b.exceeded()
	}
}

// capture retains the first max bytes and discards the rest.
type capture struct {
	budget *budget // nil: unlimited
	max    int64
	kept   []byte
	also   io.Writer // nil: nobody
}

// buffers of drain. A run takes three: without a pool they would be most of its garbage.
var buffers = sync.Pool{New: func() any { return new(buffer) }}

type buffer [32 << 10]byte

// drain reads f to its end. A failed read ends the capture, as the end of the pipe does.
func (c *capture) drain(f io.Reader) {
	buf := buffers.Get().(*buffer) //nolint:forcetypeassert // as New makes them
	defer buffers.Put(buf)
	for {
		n, err := f.Read(buf[:])
		c.add(buf[:n])
		if err != nil {
			return
		}
	}
}

func (c *capture) add(p []byte) {
	if c.budget != nil {
		c.budget.spend(len(p))
	}
	if c.also != nil && len(p) > 0 {
		_, _ = c.also.Write(p) // a failed write does not end the run
	}
	c.kept = append(c.kept, p[:min(int64(len(p)), c.max-int64(len(c.kept)))]...)
}

// tablesMax bounds the page tables of a sandbox, in bytes. No limit of a process counts
// them: mappings of one page each, far apart, need two pages of table each. Usual
// mappings need a five-hundredth of their size.
const tablesMax = 32 << 20

// watchPace is how often page tables are measured.
const watchPace = 20 * time.Millisecond

// watch ends a sandbox that has too much of page tables, until ctx ends.
func (b *Instance) watch(ctx context.Context, over func()) {
	name := "/proc/" + strconv.Itoa(b.proc.Pid) + "/status"
	tick := time.NewTicker(watchPace)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.exited:
			return
		case <-tick.C:
		}
		if n, ok := pageTables(name); ok && n > tablesMax {
			over()
			return
		}
	}
}

// pageTables is the size of a process's page tables in bytes; false: it is gone.
func pageTables(status string) (int64, bool) {
	f, err := os.Open(status) //nolint:gosec // G304: of a process of ours
	if err != nil {
		return 0, false
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		rest, found := strings.CutPrefix(lines.Text(), "VmPTE:")
		if !found {
			continue
		}
		kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(rest, "kB")), 10, 64)
		return kib << 10, err == nil
	}
	return 0, false
}
