package mcp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
)

// inherited are the variables of our environment that a child sees.
var inherited = []string{"PATH", "HOME", "LANG", "TMPDIR"}

// exitGrace is how long a child may take to end once its input is closed.
const exitGrace = 2 * time.Second

// tappedStdio is the stdio transport, which also shows responses as received.
type tappedStdio struct {
	*transport.Stdio
	out *lines
}

func (t tappedStdio) SendRequest(ctx context.Context, req transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	st := stateOf(ctx)
	r, err := t.Stdio.SendRequest(ctx, req)
	st.see(r)
	if err != nil && t.out.tooLong.Load() {
		st.limit.Store(t.out.limit)
		st.tooLarge.Store(true)
	}
	return r, err
}

var _ transport.BidirectionalInterface = tappedStdio{}

// openStdio starts the child process in a process group of its own.
func (c *Client) openStdio(ctx context.Context) (*conn, error) {
	ch, err := c.start(context.WithoutCancel(ctx))
	if err != nil {
		return nil, err
	}
	out := &lines{in: ch.stdout, limit: c.opt.MaxBytes}
	rpc := client.NewClient(tappedStdio{transport.NewIO(out, ch.stdin, nil), out})
	return &conn{
		rpc:  rpc,
		gone: func() bool { return ch.dead() || out.ended.Load() },
		close: func() {
			_ = rpc.Close() // fails the calls in flight, closes the child's input
			ch.stop()
		},
	}, nil
}

// child is a server process that this client owns.
type child struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *os.File
	exited chan struct{} // closed when the process is reaped
	drains sync.WaitGroup
}

// start runs the command, which outlives no client but is not bound to ctx: a
// connection is used by later calls. The pipes are our own, so that reaping the process
// does not throw away what it wrote last.
func (c *Client) start(ctx context.Context) (*child, error) {
	//nolint:gosec // G204: the command is the configuration of whoever runs this process
	cmd := exec.CommandContext(ctx, c.src.Command[0], c.src.Command[1:]...)
	cmd.Env, cmd.Dir = environment(c.opt.Env), c.opt.Dir
	ownGroup(cmd)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, stdin.Close())
	}
	errR, errW, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, stdin.Close(), outR.Close(), outW.Close())
	}
	cmd.Stdout, cmd.Stderr = outW, errW
	err = cmd.Start()
	outW.Close()
	errW.Close()
	if err != nil {
		stdin.Close()
		outR.Close()
		errR.Close()
		return nil, err
	}
	ch := &child{cmd: cmd, stdin: stdin, stdout: outR, exited: make(chan struct{})}
	ch.drains.Go(func() { drain(ctx, errR, c.log) })
	go func() { // ends with the process, which stop kills
		err := cmd.Wait()
		killGroup(cmd) // what the child left behind would keep its pipes open
		c.log.DebugContext(ctx, "skill server process ended", slog.Any("error", err))
		close(ch.exited)
	}()
	return ch, nil
}

func environment(extra map[string]string) []string {
	var env []string
	for _, name := range inherited {
		if v, ok := os.LookupEnv(name); ok {
			if _, set := extra[name]; !set {
				env = append(env, name+"="+v)
			}
		}
	}
	for name, v := range extra {
		env = append(env, name+"="+v)
	}
	slices.Sort(env)
	if env == nil {
		env = []string{} // nil would mean all of ours
	}
	return env
}

func (ch *child) dead() bool {
	select {
	case <-ch.exited:
		return true
	default:
		return false
	}
}

// stop waits a moment for the child to end after its input closed, then kills
// its whole group. It returns when the process is reaped.
func (ch *child) stop() {
	t := time.NewTimer(exitGrace)
	defer t.Stop()
	select {
	case <-ch.exited:
	case <-t.C:
		killGroup(ch.cmd)
		<-ch.exited
	}
	ch.stdout.Close()
	ch.drains.Wait()
}

// lines passes on the child's output and ends it at a line above limit bytes:
// the stream cannot be trusted to find its way back, so the connection ends.
type lines struct {
	in      io.Reader
	limit   int64
	at      int64 // bytes of the present line
	tooLong atomic.Bool
	ended   atomic.Bool
}

func (l *lines) Read(p []byte) (int, error) {
	n, err := l.in.Read(p)
	b := p[:n]
	for {
		i := bytes.IndexByte(b, '\n')
		if i < 0 {
			l.at += int64(len(b))
			break
		}
		if l.at+int64(i) > l.limit {
			l.at += int64(i)
			break
		}
		l.at, b = 0, b[i+1:]
	}
	if l.at > l.limit {
		l.tooLong.Store(true)
		l.ended.Store(true)
		return 0, io.EOF
	}
	if err != nil {
		l.ended.Store(true)
		err = io.EOF // why it ended is the business of the process, not of a log line
	}
	return n, err
}
