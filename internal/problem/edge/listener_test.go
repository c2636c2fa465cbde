package edge_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"aob.dev/writ/internal/problem/edge"
)

// patient limits, so that nothing ends by itself while a test lasts.
var patient = edge.Limits{Header: time.Minute, Body: time.Minute, Idle: time.Minute, Write: time.Minute, Connections: 8, PerAddress: 4, Spare: 2}

// house is a listener whose clients come from addresses of the test's choosing.
type house struct {
	t    *testing.T
	come chan net.Conn
	shut chan struct{}
	busy chan struct{} // one for each /wait that has begun
}

func (h *house) Accept() (net.Conn, error) {
	select {
	case c := <-h.come:
		return c, nil
	case <-h.shut:
		return nil, net.ErrClosed
	}
}

func (h *house) Close() error   { return nil }
func (h *house) Addr() net.Addr { return &net.TCPAddr{} }

// from is a connection with an address.
type from struct {
	net.Conn
	addr *net.TCPAddr
}

func (c from) RemoteAddr() net.Addr { return c.addr }

// serveHouse answers /wait once hold is closed, and all else at once.
func serveHouse(t *testing.T, hold <-chan struct{}) *house {
	t.Helper()
	h := &house{t: t, come: make(chan net.Conn), shut: make(chan struct{}), busy: make(chan struct{})}
	s := patient.Server(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/wait" {
			h.busy <- struct{}{}
			<-hold
		}
		_, _ = io.WriteString(w, "well")
	}))
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(patient.Listener(h)) }()
	t.Cleanup(func() {
		close(h.shut)
		_ = s.Close()
		<-ended
	})
	return h
}

// client is a connection from an address.
type client struct {
	t *testing.T
	net.Conn
	r *bufio.Reader
}

func (h *house) dial(ip string) *client {
	h.t.Helper()
	ours, theirs := net.Pipe()
	h.come <- from{theirs, &net.TCPAddr{IP: net.ParseIP(ip), Port: 1}}
	h.t.Cleanup(func() { _ = ours.Close() })
	return &client{h.t, ours, bufio.NewReader(ours)}
}

func (c *client) ask(path string) {
	c.t.Helper()
	if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path); err != nil {
		c.t.Fatal(err)
	}
}

// get asks and returns the status; 0: the connection had ended.
func (c *client) get(path string) int {
	c.t.Helper()
	if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path); err != nil {
		return 0
	}
	return c.answer()
}

func (c *client) answer() int {
	c.t.Helper()
	resp, err := http.ReadResponse(c.r, nil)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		c.t.Error(err)
	}
	return resp.StatusCode
}

// ended waits until the other side has closed.
func (c *client) ended() {
	c.t.Helper()
	if _, err := c.r.ReadByte(); !errors.Is(err, io.EOF) {
		c.t.Errorf("the connection goes on: %v", err)
	}
}

// Connections that wait make room, those of who has most of them first.
func TestIdleConnectionsMakeRoom(t *testing.T) {
	h := serveHouse(t, nil)
	friend := h.dial("192.0.2.9")
	if got := friend.get("/"); got != http.StatusOK {
		t.Fatal(got)
	}
	var idle []*client
	for range patient.PerAddress {
		idle = append(idle, h.dial("192.0.2.1"))
	}
	sixth := h.dial("192.0.2.1") // beyond what an address may have
	idle[0].ended()
	for i := range patient.Connections - patient.PerAddress - 1 {
		h.dial(fmt.Sprintf("192.0.2.%d", 20+i))
	}
	last := h.dial("2001:db8::1") // beyond what there may be
	idle[1].ended()
	for name, c := range map[string]*client{"friend": friend, "the same address": sixth, "another": last} {
		if got := c.get("/"); got != http.StatusOK {
			t.Errorf("%s: HTTP %d", name, got)
		}
	}
}

// Where every connection is busy, whoever comes is told whether the service is
// well, and nothing else.
func TestHealthIsNeverStarved(t *testing.T) {
	hold := make(chan struct{})
	h := serveHouse(t, hold)
	var busy []*client
	for i := range patient.Connections {
		c := h.dial(fmt.Sprintf("192.0.2.%d", 1+i/patient.PerAddress))
		c.ask("/wait")
		<-h.busy
		busy = append(busy, c)
	}
	if got := h.dial("198.51.100.1").get("/"); got != http.StatusTooManyRequests {
		t.Errorf("HTTP %d", got)
	}
	for range 3 * patient.Spare { // they take each other's place
		h.dial("192.0.2.1")
	}
	probe := h.dial("198.51.100.1") // one: the server may take the first for busy a moment longer
	for _, path := range []string{"/livez", "/readyz"} {
		if got := probe.get(path); got != http.StatusOK {
			t.Errorf("%s: HTTP %d", path, got)
		}
	}
	close(hold)
	for i, c := range busy {
		if got := c.answer(); got != http.StatusOK {
			t.Errorf("request %d: HTTP %d", i, got)
		}
	}
}

// A prefix that one IPv6 client has at hand counts as one address.
func TestPrefixIsOneAddress(t *testing.T) {
	h := serveHouse(t, nil)
	first := h.dial("2001:db8:0:1::1")
	for i := range patient.PerAddress {
		h.dial(fmt.Sprintf("2001:db8:0:1::%d", 2+i))
	}
	first.ended()
}
