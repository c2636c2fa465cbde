//go:build amd64 || arm64

package sandbox

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// chunkSize is the unit in which input crosses the pipe, in bytes: all of it
// that the parent ever holds.
const chunkSize = 256 << 10

// feedPipe is what the pipe of a large input should hold, in bytes: the most that
// a user may ask for.
const feedPipe = 1 << 20

// Run hands job to the box, waits for its end and closes the box. The limits
// are those that the box was built with.
//
// An error means that there is no result: ctx ended, the input could not be
// read or did not fit, or the box was broken or could not be built.
func (b *Box) Run(ctx context.Context, job Job) (res Result, err error) {
	defer func() { err = errors.Join(err, b.Close()) }()
	end := &ending{kill: b.kill}
	if job.InputSize > chunkSize {
		widen(b.feed)
	}
	// Python may still start: the script is there when it asks.
	var sent int64
	var feedErr error
	var feeder sync.WaitGroup
	feeder.Go(func() {
		if sent, feedErr = feed(b.feed, job); feedErr != nil {
			end.by(aborted)
		}
		b.feed.Close()
	})
	if err := b.awaitReady(ctx); err != nil {
		b.Close()
		feeder.Wait()
		if end.reason() == aborted {
			err = fmt.Errorf("read input: %w", feedErr)
		}
		return Result{}, err
	}

	start := time.Now()
	stopCtx := context.AfterFunc(ctx, func() { end.by(canceled) })
	defer stopCtx()
	wall := time.AfterFunc(b.limits.Wall, func() { end.by(Timeout) })
	defer wall.Stop()

	budget := &budget{left: b.limits.Output, over: func() { end.by(OversizedOutput) }}
	out, stderr := &capture{budget: budget, max: b.limits.Output}, &capture{budget: budget, max: 0}
	report := &capture{max: reportMax}
	var readers sync.WaitGroup
	readers.Go(func() { out.drain(b.out) })
	readers.Go(func() { stderr.drain(b.errs) })
	readers.Go(func() { report.drain(b.report) })

	<-b.exited
	duration := time.Since(start)
	cut(b.out, b.errs, b.report)
	readers.Wait()
	feeder.Wait()

	why := end.reason()
	switch {
	case why == canceled:
		return Result{}, ctx.Err()
	case why == aborted:
		return Result{}, fmt.Errorf("read input: %w", feedErr)
	}
	if b.waitErr != nil {
		return Result{}, nil // Close tells
	}
	ended := b.ended()
	verdict := judge(why, ended, report.kept, b.limits)
	if verdict.input {
		return Result{}, fmt.Errorf("%w: %s", ErrInputSize, verdict.text)
	}
	sum := sha256.Sum256([]byte(job.Script))
	return Result{
		Outcome: verdict.outcome, Limit: verdict.limit, Output: out.kept, Error: verdict.text, ScriptSHA256: hex.EncodeToString(sum[:]),
		Driver: b.driver, Python: b.python, Duration: duration,
		CPU: ended.cpu, ExitCode: ended.code, InputBytes: sent,
	}, nil
}

// widen lets a pipe hold more. It is refused where the user has many, and then
// the run is only slower.
func widen(pipe *os.File) {
	if c, err := pipe.SyscallConn(); err == nil {
		_ = c.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, feedPipe) })
	}
}

// feed writes script and input in the framing of boot.py and returns the input
// bytes written. The box may end at any time, which is not an error here.
func feed(w io.Writer, job Job) (int64, error) {
	frame := binary.BigEndian.AppendUint32(nil, uint32(len(job.Script))) //nolint:gosec // G115: within range
	frame = append(frame, job.Script...)
	if job.Input == nil {
		_, _ = w.Write(append(frame, 0))
		return 0, nil
	}
	if _, err := w.Write(append(frame, 1)); err != nil {
		return 0, nil //nolint:nilerr // the box ended
	}
	var sent int64
	buf := make([]byte, 4+chunkSize)
	for {
		n, err := io.ReadFull(job.Input, buf[4:])
		if n > 0 {
			binary.BigEndian.PutUint32(buf, uint32(n)) //nolint:gosec // G115: within range
			if _, err := w.Write(buf[:4+n]); err != nil {
				return sent, nil //nolint:nilerr // the box ended
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

// Reasons of the parent that are not outcomes.
const (
	canceled Outcome = "canceled" // ctx ended
	aborted  Outcome = "aborted"  // Input failed
)

// ending keeps the first reason for which the parent ends a run.
type ending struct {
	kill  func()
	mu    sync.Mutex
	first Outcome
}

func (e *ending) by(o Outcome) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.first == "" {
		e.first = o
		e.kill()
	}
}

func (e *ending) reason() Outcome {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.first
}

// budget counts bytes over several captures.
type budget struct {
	mu   sync.Mutex
	left int64
	over func()
}

func (b *budget) spend(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.left -= int64(n); b.left < 0 {
		b.over()
	}
}

// capture keeps the first max bytes and swallows the rest.
type capture struct {
	budget *budget // nil: unlimited
	max    int64
	kept   []byte
}

// buffers of drain. A run makes three, and would leave more garbage behind in
// them than in all else.
var buffers = sync.Pool{New: func() any { return new(buffer) }}

type buffer [32 << 10]byte

// drain reads f to its end. A read that fails ends what is kept, as the end of
// the pipe does.
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
	c.kept = append(c.kept, p[:min(int64(len(p)), c.max-int64(len(c.kept)))]...)
}

// reported are the limits that a script meets as an exception, by the kind under
// which boot.py reports that.
var reported = map[byte]Limit{'S': ScratchLimit, 'D': FilesLimit, 'T': ThreadsLimit}

// verdict is how a run ended, from evidence that is all but why under the
// control of the script.
type verdict struct {
	outcome Outcome
	limit   Limit
	text    string
	input   bool // boot.py could not store the input
}

// end is how a process ended.
type end struct {
	code   int            // -1 if ended by a signal
	signal syscall.Signal // 0: none
	cpu    time.Duration
	// foreign: cpu is not that of the script, and nothing but its limit kills it.
	foreign bool
}

// ended reads the state of a process that ended.
func (b *Box) ended() end {
	e := end{code: b.state.ExitCode(), cpu: b.state.UserTime() + b.state.SystemTime()}
	if status, ok := b.state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		e.signal = status.Signal()
	}
	const first, last = 129, 128 + 64
	e.foreign = b.shell
	if b.shell && e.code >= first && e.code <= last {
		e.code, e.signal = -1, syscall.Signal(e.code-128)
	}
	return e
}

// judge labels the end of a run: the parent's own reason first, then the
// signal, then what boot.py reported.
func judge(why Outcome, e end, report []byte, l Limits) verdict {
	switch why {
	case Timeout:
		return verdict{outcome: Timeout, limit: WallLimit, text: fmt.Sprintf("ended after %s", l.Wall)}
	case OversizedOutput:
		return verdict{outcome: OversizedOutput, limit: OutputLimit, text: fmt.Sprintf("more than %d bytes of output", l.Output)}
	default: // it ended by itself
	}
	if e.signal != 0 {
		return judgeSignal(e, l)
	}
	var kind byte
	if len(report) > 0 {
		kind, report = report[0], report[1:]
	}
	switch {
	case kind == 'I':
		return verdict{input: true, text: string(report)}
	case kind == 'M':
		return verdict{outcome: Memory, limit: MemoryLimit, text: string(report)}
	case kind == 'E' || reported[kind] != NoLimit:
		return verdict{outcome: ScriptError, limit: reported[kind], text: string(report)}
	case e.code != 0:
		return verdict{outcome: ScriptError, text: fmt.Sprintf("exit status %d", e.code)}
	}
	return verdict{outcome: OK}
}

func judgeSignal(e end, l Limits) verdict {
	sig := e.signal
	switch {
	case sig == sigPolicy:
		return verdict{outcome: Policy, text: "forbidden system call"}
	// The kernel enforces the limit on sampled ticks but reports exact time,
	// which on a busy or virtual machine can be far less. Half is a safe sign:
	// the other SIGKILL that is not ours comes from the memory killer.
	case sig == sigCPU || sig == syscall.SIGKILL && (e.foreign || e.cpu >= l.CPU/2):
		return verdict{outcome: Timeout, limit: CPULimit, text: fmt.Sprintf("used %s of processor time", l.CPU)}
	case sig == syscall.SIGKILL:
		return verdict{outcome: Memory, limit: MemoryLimit, text: "killed by the kernel"}
	}
	return verdict{outcome: Crash, text: "signal: " + sig.String()}
}
