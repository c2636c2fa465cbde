package edge

import (
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// listener accepts every connection, so that none waits for another, and closes others if
// there are too many.
type listener struct {
	net.Listener
	limits Limits

	mu     sync.Mutex // guards the fields below, and the state of conns
	conns  map[*conn]struct{}
	from   map[string]int // connections by address, without spare ones
	total  int            // the sum of from
	spares int
}

// conn is a connection of a listener.
type conn struct {
	net.Conn
	all     *listener
	address string
	spare   bool
	waits   bool        // for a request, its first or another
	since   time.Time   // when that began
	timed   atomic.Bool // a handler bounds its writes itself
}

// Write implements net.Conn. A client that does not receive the answer in time loses the
// connection.
func (c *conn) Write(p []byte) (int, error) {
	if !c.timed.Load() && c.all.limits.Write > 0 {
		if err := c.Conn.SetWriteDeadline(time.Now().Add(c.all.limits.Write)); err != nil {
			return 0, err
		}
	}
	return c.Conn.Write(p)
}

// SetWriteDeadline implements net.Conn.
func (c *conn) SetWriteDeadline(t time.Time) error {
	c.timed.Store(!t.IsZero())
	return c.Conn.SetWriteDeadline(t)
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	for {
		inner, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &conn{Conn: inner, all: l, address: Address(inner.RemoteAddr().String()), waits: true, since: time.Now()}
		ended, ok := l.admit(c)
		if ended != nil {
			_ = ended.Conn.Close() // it was waiting for a request
		}
		if ok {
			return c, nil
		}
		_ = inner.Close()
	}
}

// admit admits a connection. If there are too many, it takes the place of another, which
// must be closed, or becomes a spare one. Not ok: there is no place.
func (l *listener) admit(c *conn) (ended *conn, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	crowded := l.from[c.address] >= l.limits.PerAddress
	if crowded || l.total >= l.limits.Connections {
		ended = l.oldest(func(x *conn) bool { return !x.spare && (!crowded || x.address == c.address) })
		c.spare = ended == nil
	}
	if c.spare && l.spares >= l.limits.Spare {
		if ended = l.oldest(func(x *conn) bool { return x.spare }); ended == nil {
			return nil, false
		}
	}
	if ended != nil {
		l.drop(ended)
	}
	l.conns[c] = struct{}{}
	if c.spare {
		l.spares++
	} else {
		l.from[c.address]++
		l.total++
	}
	return ended, true
}

// oldest finds the connection that has waited longest, of the address with the most
// connections. The caller holds the lock.
func (l *listener) oldest(among func(*conn) bool) *conn {
	var found *conn
	for x := range l.conns {
		if !x.waits || !among(x) {
			continue
		}
		if found == nil || l.from[x.address] > l.from[found.address] ||
			l.from[x.address] == l.from[found.address] && x.since.Before(found.since) {
			found = x
		}
	}
	return found
}

// drop removes a connection from the counts, once. The caller holds the lock.
func (l *listener) drop(c *conn) {
	if _, there := l.conns[c]; !there {
		return
	}
	delete(l.conns, c)
	if c.spare {
		l.spares--
		return
	}
	l.total--
	if l.from[c.address]--; l.from[c.address] == 0 {
		delete(l.from, c.address)
	}
}

// moved records the new state of a connection.
func (l *listener) moved(c *conn, state http.ConnState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch state {
	case http.StateNew, http.StateIdle:
		c.waits, c.since = true, time.Now()
	case http.StateActive, http.StateHijacked:
		c.waits = false
	case http.StateClosed:
		l.drop(c)
	}
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.all.mu.Lock()
	c.all.drop(c)
	c.all.mu.Unlock()
	return c.Conn.Close()
}

// Address is the address that a connection is counted for.
func Address(remote string) string {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return remote
	}
	ip := at.Addr().Unmap()
	if ip.Is6() {
		if p, err := ip.WithZone("").Prefix(64); err == nil {
			return p.String()
		}
	}
	return ip.String()
}
