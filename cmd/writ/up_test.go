package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"aob.dev/writ/internal/clock"
)

// process is a `writ up` in the background.
type process struct {
	cmd            *exec.Cmd
	stdout, stderr bytes.Buffer  // complete when ended is closed
	announced      chan string   // gets the URL, once
	ending         chan struct{} // closed when it says that it is ending
	ended          chan struct{}
	err            error // of Wait
}

var announcement = regexp.MustCompile(`^writ is up on (http://\S+) in `)

// up starts writ and waits until it says where it listens.
func up(ts *testscript.TestScript, w *world, args []string) {
	if w.up != nil {
		ts.Fatalf("it is up already")
	}
	p := &process{announced: make(chan string, 1), ending: make(chan struct{}), ended: make(chan struct{})}
	p.cmd = exec.Command("writ", append([]string{"up", "--data", w.data, "--listen", "127.0.0.1:0"}, args...)...)
	p.cmd.Dir, p.cmd.Env, p.cmd.Stdout = ts.MkAbs("."), environ(ts, w), &p.stdout
	stderr, err := p.cmd.StderrPipe()
	ts.Check(err)
	ts.Check(p.cmd.Start())
	go p.follow(stderr)
	ts.Defer(func() {
		_ = p.cmd.Process.Kill() // gone already, most times
		<-p.ended
	})
	select {
	case w.url = <-p.announced:
		w.up, w.args = p, args
		ts.Setenv("URL", w.url)
	case <-p.ended:
		ts.Fatalf("writ up ended: %v\n%s", p.err, p.stderr.Bytes())
	case <-time.After(patience):
		ts.Fatalf("writ up says nothing")
	}
}

// follow reads standard error to its end and then waits for the process.
func (p *process) follow(stderr io.Reader) {
	defer close(p.ended)
	lines := bufio.NewScanner(io.TeeReader(stderr, &p.stderr))
	lines.Buffer(nil, 1<<20)
	var once, said sync.Once
	for lines.Scan() {
		if strings.Contains(lines.Text(), "Ctrl-C again") {
			said.Do(func() { close(p.ending) })
		}
		if m := announcement.FindStringSubmatch(lines.Text()); m != nil {
			once.Do(func() { p.announced <- m[1] })
		}
	}
	p.err = p.cmd.Wait()
}

// down tells writ to stop; it must end with exit code 0. What it printed is
// there for stdout and stderr.
func down(ts *testscript.TestScript, w *world, _ []string) {
	p := ending(ts, w, syscall.SIGTERM)
	if p.err != nil {
		ts.Fatalf("writ up: %v\n%s", p.err, p.stderr.Bytes())
	}
}

// die kills writ as a power cut would.
func die(ts *testscript.TestScript, w *world, _ []string) { ending(ts, w, syscall.SIGKILL) }

func ending(ts *testscript.TestScript, w *world, sig syscall.Signal) *process {
	p := w.up
	if p == nil {
		ts.Fatalf("it is not up")
	}
	w.up = nil
	ts.Check(p.cmd.Process.Signal(sig))
	select {
	case <-p.ended:
	case <-time.After(patience):
		ts.Fatalf("writ up does not end")
	}
	must[int](ts)(ts.Stdout().Write(p.stdout.Bytes()))
	must[int](ts)(ts.Stderr().Write(p.stderr.Bytes()))
	return p
}

// interrupted sends Ctrl-C, and another one once writ says that it is ending. That ends it
// at once: by the signal, and not with an exit code.
func interrupted(ts *testscript.TestScript, w *world, _ []string) {
	p := w.up
	if p == nil {
		ts.Fatalf("it is not up")
	}
	ts.Check(p.cmd.Process.Signal(os.Interrupt))
	select {
	case <-p.ending:
	case <-p.ended:
		ts.Fatalf("writ up has ended by itself")
	case <-time.After(patience):
		ts.Fatalf("writ up does not say that it is ending")
	}
	p = ending(ts, w, syscall.SIGINT)
	if status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !status.Signaled() || status.Signal() != syscall.SIGINT {
		ts.Fatalf("after a second Ctrl-C: %v", p.cmd.ProcessState)
	}
}

// begun waits until something that does not end has begun.
func begun(ts *testscript.TestScript, w *world, args []string) {
	if len(args) == 2 && args[0] == "script" {
		scriptBegun(ts, w, args[1])
		return
	}
	want(ts, args, 1, "begun model|skill|script RUN")
	ch, ok := map[string]chan struct{}{"model": w.calledCities, "skill": w.called}[args[0]]
	if !ok || ch == nil {
		ts.Fatalf("there is no %s", args[0])
	}
	select {
	case <-ch:
	case <-time.After(patience):
		ts.Fatalf("no %s was asked", args[0])
	}
}

// scriptBegun waits until the script of a run has written that it hangs.
func scriptBegun(ts *testscript.TestScript, w *world, run string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	ts.Check(clock.Every(ctx, 20*time.Millisecond, func() bool {
		cmd := exec.CommandContext(ctx, "writ", "plan", "logs", run, "--url", w.url, "--data", w.data)
		cmd.Env = environ(ts, w)
		out, _ := cmd.Output() // nothing, as long as the run is not there
		return bytes.Contains(out, []byte("python:stderr hangs"))
	}))
}

// occupy takes a port, at $TAKEN.
func occupy(ts *testscript.TestScript, _ *world, _ []string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Defer(func() { _ = l.Close() })
	ts.Setenv("TAKEN", l.Addr().String())
}
