package servertest

import (
	"context"
	"io"
	"net"
	"strconv"
	"sync"
	"testing"
)

// link forwards connections to a port of this machine, unless it is cut.
type link struct {
	addr, to string

	mu    sync.Mutex // guards what follows
	cut   bool
	conns map[net.Conn]bool
}

func newLink(t testing.TB, port int) *link {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &link{addr: listener.Addr().String(), to: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), conns: map[net.Conn]bool{}}
	t.Cleanup(func() { _ = listener.Close(); l.set(true) })
	go func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			go l.forward(context.WithoutCancel(t.Context()), in)
		}
	}()
	return l
}

func (l *link) forward(ctx context.Context, in net.Conn) {
	defer l.drop(in)
	if !l.keep(in) {
		return
	}
	out, err := new(net.Dialer).DialContext(ctx, "tcp", l.to)
	if err != nil {
		return
	}
	defer l.drop(out)
	if !l.keep(out) {
		return
	}
	go func() {
		_, _ = io.Copy(out, in)
		l.drop(out)
	}()
	_, _ = io.Copy(in, out)
}

// keep a connection, unless the link is cut.
func (l *link) keep(c net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.cut {
		l.conns[c] = true
	}
	return !l.cut
}

func (l *link) drop(c net.Conn) {
	_ = c.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, c)
}

func (l *link) set(cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut = cut; !cut {
		return
	}
	for c := range l.conns {
		_ = c.Close()
	}
}
