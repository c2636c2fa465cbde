package natstest

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"
)

// link forwards connections to an address, unless it is cut. Those that come before the first
// one is known wait for it: servers that lose their first routes are slow to agree.
type link struct {
	addr  string
	aimed chan struct{} // closed when aim was called
	once  sync.Once

	mu    sync.Mutex // guards the fields below
	to    string     // empty: nowhere
	cut   bool
	conns map[net.Conn]bool
}

func newLink(t testing.TB) *link {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listen for a link: %v", err)
	}
	l := &link{addr: listener.Addr().String(), aimed: make(chan struct{}), conns: map[net.Conn]bool{}}
	t.Cleanup(func() { _ = listener.Close(); l.aim("") })
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
	<-l.aimed
	to := l.keep(in)
	if to == "" {
		return
	}
	out, err := new(net.Dialer).DialContext(ctx, "tcp", to)
	if err != nil {
		return
	}
	defer l.drop(out)
	if l.keep(out) != to {
		return
	}
	go func() {
		_, _ = io.Copy(out, in)
		l.drop(out)
	}()
	_, _ = io.Copy(in, out)
}

// keep records a connection, and returns where it leads: nowhere, if the link is cut.
func (l *link) keep(c net.Conn) (to string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut {
		return ""
	}
	l.conns[c] = true
	return l.to
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
	if l.cut = cut; cut {
		l.dropAll()
	}
}

// aim at another address. The connections to the one of before end.
func (l *link) aim(to string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.to = to
	l.once.Do(func() { close(l.aimed) })
	l.dropAll()
}

func (l *link) dropAll() {
	for c := range l.conns {
		_ = c.Close()
	}
}
