//go:build amd64 || arm64

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"aob.dev/writ/executors/sandbox/spawn"
)

const (
	// setupTimeout bounds the time from clone to a waiting Python.
	setupTimeout = 20 * time.Second

	// drainGrace is how long output is still read after the end of the
	// process, should something else hold the other end of a pipe.
	drainGrace = 500 * time.Millisecond

	// reportMax bounds the captured output of fd 4, in bytes.
	reportMax = 16 << 10
)

// errBuild: the sandbox ended before there was a Python in it, so no script ran.
var errBuild = errors.New("build sandbox")

// Instance is one Python process in its finished sandbox. It takes one script.
type Instance struct {
	proc   *os.Process
	feed   *os.File // write ends and read ends of the parent
	out    *os.File
	errs   *os.File
	report *os.File

	limits  Limits
	driver  string
	python  string
	cleanup func() error
	explain func(spawn.Failure) error

	ready bool // boot.py has announced itself

	exited  chan struct{} // closed once state and waitErr are set
	state   *os.ProcessState
	waitErr error

	closing  sync.Once
	closeErr error
}

// childEnds are the pipe ends that go to the sandbox.
type childEnds struct{ feed, out, errs, report *os.File }

func (e childEnds) close() {
	for _, f := range []*os.File{e.feed, e.out, e.errs, e.report} {
		if f != nil {
			f.Close()
		}
	}
}

// newInstance makes the pipes between parent and sandbox.
func newInstance() (*Instance, childEnds, error) {
	b := &Instance{exited: make(chan struct{})}
	var theirs childEnds
	var errs [4]error
	theirs.feed, b.feed, errs[0] = os.Pipe()
	b.out, theirs.out, errs[1] = os.Pipe()
	b.errs, theirs.errs, errs[2] = os.Pipe()
	b.report, theirs.report, errs[3] = os.Pipe()
	if err := errors.Join(errs[:]...); err != nil {
		theirs.close()
		b.closePipes()
		return nil, childEnds{}, err
	}
	return b, theirs, nil
}

func (b *Instance) closePipes() {
	childEnds{b.feed, b.out, b.errs, b.report}.close()
}

// wait collects the exit status. It ends with the process, which Close ensures.
func (b *Instance) wait() {
	b.state, b.waitErr = b.proc.Wait()
	close(b.exited)
}

// alive reports whether the process has not ended.
func (b *Instance) alive() bool {
	select {
	case <-b.exited:
		return false
	default:
		return true
	}
}

// awaitReady returns once boot.py has sent its first byte. Anything else was written by
// our own code before Python started, so it is not an error of the script.
func (b *Instance) awaitReady(ctx context.Context) error {
	if b.ready {
		return nil
	}
	if err := b.report.SetReadDeadline(time.Now().Add(setupTimeout)); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = b.report.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	first := make([]byte, 1)
	n, err := b.report.Read(first)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return errors.New("sandbox was not ready in time")
	case n == 1 && first[0] == 'R':
		b.ready = true
		return b.report.SetReadDeadline(time.Time{})
	}
	// The cause is unknown, so the error has the output of both channels.
	b.kill()
	<-b.exited
	if b.waitErr != nil {
		return fmt.Errorf("wait for sandbox: %w", b.waitErr)
	}
	cut(b.report, b.errs)
	rest, _ := io.ReadAll(io.LimitReader(b.report, reportMax))
	stderr, _ := io.ReadAll(io.LimitReader(b.errs, reportMax))
	report := append(first[:n], rest...)
	if f, ok := spawn.ParseFailure(report); ok {
		return fmt.Errorf("%w: %w", errBuild, b.explain(f))
	}
	return fmt.Errorf("%w: %s", errBuild, strings.TrimSpace(fmt.Sprintf("%s %s (%v)", report, stderr, b.state)))
}

// cut ends reading after the grace: the process is gone, and later output of another process that
// holds the other end of a pipe is ignored.
func cut(pipes ...*os.File) {
	deadline := time.Now().Add(drainGrace)
	for _, f := range pipes {
		_ = f.SetReadDeadline(deadline) // a pipe of ours takes one
	}
}

// kill ends the process; one that ended already is left alone.
func (b *Instance) kill() { _ = b.proc.Kill() }

// Close ends the process and frees what belongs to the sandbox. It is safe to call
// more than once, and after Run.
func (b *Instance) Close() error {
	b.closing.Do(func() {
		b.kill()
		<-b.exited
		b.closePipes()
		b.closeErr = errors.Join(b.waitErr, b.cleanup())
	})
	return b.closeErr
}
