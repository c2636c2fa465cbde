package mcp

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"

	"aob.dev/writ/executors/sandbox"
	"aob.dev/writ/intents"
)

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
	if err == nil {
		st.see(req.Method, r)
	} else {
		cancelled(ctx, t, req)
	}
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
	out := &lines{in: ch.Stdout, limit: c.opt.MaxBytes}
	rpc := client.NewClient(tappedStdio{transport.NewIO(&jsonReader{in: out}, ch.Stdin, nil), out})
	return &conn{
		rpc:  rpc,
		dead: func() bool { return ch.dead() || out.ended.Load() },
		close: func() {
			_ = rpc.Close() // fails the calls in flight, closes the child's input
			ch.stop()
		},
	}, nil
}

// child is a server process that this client owns.
type child struct {
	*sandbox.ServerProcess
	exited chan struct{} // closed when the process is reaped
	drains sync.WaitGroup
}

// start starts the process. It ends with the client, not with ctx, since later calls
// use the connection.
func (c *Client) start(ctx context.Context) (*child, error) {
	p, err := c.launch(ctx)
	if err != nil {
		return nil, err
	}
	ch := &child{ServerProcess: p, exited: make(chan struct{})}
	ch.drains.Go(func() {
		drain(p.Stderr, func(line string) {
			c.asides.say(ctx, "", ServerMessage{Level: intents.LevelInfo, Kind: "stderr", Text: line})
		})
	})
	go func() { // ends with the process, which stop kills
		err := p.Wait()
		c.log.DebugContext(ctx, "skill server process ended", slog.Any("error", err))
		close(ch.exited)
	}()
	return ch, nil
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
		ch.Kill()
		<-ch.exited
	}
	ch.Stdout.Close()
	ch.drains.Wait()
}

// lines passes on the child's output and ends it, and with it the connection, at a line
// above limit bytes.
type lines struct {
	in       io.Reader
	limit    int64
	lineSize int64 // bytes of the present line
	tooLong  atomic.Bool
	ended    atomic.Bool
}

func (l *lines) Read(p []byte) (int, error) {
	n, err := l.in.Read(p)
	b := p[:n]
	for {
		i := bytes.IndexByte(b, '\n')
		if i < 0 {
			l.lineSize += int64(len(b))
			break
		}
		if l.lineSize+int64(i) > l.limit {
			l.lineSize += int64(i)
			break
		}
		l.lineSize, b = 0, b[i+1:]
	}
	if l.lineSize > l.limit {
		l.tooLong.Store(true)
		l.ended.Store(true)
		return 0, io.EOF
	}
	if err != nil {
		l.ended.Store(true)
		err = io.EOF // the library would log any other error
	}
	return n, err
}

// drain logs the standard error of a child until it ends. It never stops reading, since a full pipe
// would block the child.
func drain(in io.ReadCloser, say func(line string)) {
	defer in.Close()
	r := bufio.NewReaderSize(in, 2*maxAside)
	for rest := false; ; {
		line, more, err := r.ReadLine()
		if err != nil {
			return
		}
		if !rest { // the rest of a long line is dropped
			say(string(line))
		}
		rest = more
	}
}

// Isolation starts the processes of skill servers so that each sees its own home
// and nothing else of this machine's secrets.
type Isolation struct {
	Servers *sandbox.Servers
	Homes   string   // directory of their homes
	Hidden  []string // files and directories that none of them sees
}

// launch starts the process of a source that is a command. Only a source with
// isolation: none becomes a plain child, where the options have an Isolation.
func (c *Client) launch(ctx context.Context) (*sandbox.ServerProcess, error) {
	if c.opt.Isolation == nil || c.src.Plain {
		return plain(ctx, c.src)
	}
	p, err := c.opt.Isolation.Servers.Start(c.opt.Isolation.server(c.src))
	if err != nil {
		return nil, fmt.Errorf("%w; isolation: none runs it with all that writ itself may see and do", err)
	}
	if len(p.Invisible) > 0 {
		c.log.WarnContext(ctx, "a skill server is not given paths that its command names: declare each under files",
			slog.String("server", c.src.Title()), slog.String("paths", strings.Join(p.Invisible, " ")))
	}
	for _, why := range p.Barred {
		c.log.WarnContext(ctx, "a skill server may not use files that are declared for it", slog.String("server", c.src.Title()), slog.String("why", why))
	}
	return p, nil
}

// server describes the isolated process of a source: it sees its own home.
func (i *Isolation) server(source Source) sandbox.Server {
	sum := sha256.Sum256([]byte(source.Server()))
	return sandbox.Server{
		Command: source.Command, Env: source.Env, Files: source.Files, Hidden: i.Hidden, Offline: source.NoNetwork,
		Dir: filepath.Join(i.Homes, hex.EncodeToString(sum[:8])),
	}
}

// inherited are the variables of our environment that a plain child sees.
var inherited = []string{"PATH", "HOME", "LANG", "TMPDIR"}

// plain runs the command as a child of this process, in a process group of its own. The pipes are
// our own, so that reaping the process does not discard its last output.
func plain(ctx context.Context, src Source) (*sandbox.ServerProcess, error) {
	path := sandbox.SearchPath(src.Env, src.Files)
	program, err := sandbox.FindProgram(src.Command[0], path)
	if err != nil {
		return nil, err
	}
	//nolint:gosec // G204: the command is the configuration of whoever runs this process
	cmd := exec.CommandContext(ctx, program, src.Command[1:]...)
	cmd.Env = environment(append([]string{"PATH=" + path}, src.Env...))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var ours, theirs [3]*os.File
	var errs [3]error
	theirs[0], ours[0], errs[0] = os.Pipe()
	ours[1], theirs[1], errs[1] = os.Pipe()
	ours[2], theirs[2], errs[2] = os.Pipe()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs[0], theirs[1], theirs[2]
	if err = errors.Join(errs[:]...); err == nil {
		err = cmd.Start()
	}
	closeAll(theirs)
	if err != nil {
		closeAll(ours)
		return nil, err
	}
	kill := func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // the whole group; one that is gone is no error
	wait := func() error {
		err := cmd.Wait()
		kill() // descendants of the child would keep its pipes open
		return err
	}
	return &sandbox.ServerProcess{Stdin: ours[0], Stdout: ours[1], Stderr: ours[2], Wait: wait, Kill: kill}, nil
}

// closeAll closes files; closing one that was not opened does nothing.
func closeAll(files [3]*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// environment is a few variables of ours, then those of the source.
func environment(configured []string) []string {
	env := []string{} // nil would mean all of ours
	for _, name := range inherited {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return slices.Concat(env, configured) // of two values of a variable the last counts
}
