package mcp

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
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
	rpc := client.NewClient(tappedStdio{transport.NewIO(out, ch.Stdin, nil), out})
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
