// Package servertest runs NATS servers of a cluster for tests, in this process.
package servertest

import (
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Patience is how long something may take that surely comes.
const Patience = time.Minute

// accounts is how many tests may share a cluster.
const accounts = 64

// Cluster of servers that sync each message. Not safe for concurrent use, but for Account.
type Cluster struct {
	t       testing.TB
	dir     string
	routes  string
	ports   []int // of clients, then of routes
	servers []*server.Server
	used    atomic.Int64
}

// Start n servers, which end with the test.
func Start(t testing.TB, n int) *Cluster {
	t.Helper()
	c := &Cluster{t: t, dir: t.TempDir(), ports: freePorts(t, 2*n), servers: make([]*server.Server, n)}
	var routes []string
	for _, port := range c.ports[n:] {
		routes = append(routes, fmt.Sprintf("nats://127.0.0.1:%d", port))
	}
	c.routes = strings.Join(routes, ", ")
	t.Cleanup(func() {
		for i := range c.servers {
			c.Stop(i)
		}
	})
	for i := range c.servers {
		c.launch(i)
	}
	for i := range c.servers {
		c.ready(i)
	}
	return c
}

func freePorts(t testing.TB, n int) (ports []int) {
	t.Helper()
	for range n {
		l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close() //nolint:errcheck // all are open until the last is known
		_, port, _ := net.SplitHostPort(l.Addr().String())
		p, err := strconv.Atoi(port)
		if err != nil {
			t.Fatal(err)
		}
		ports = append(ports, p)
	}
	return ports
}

func (c *Cluster) launch(i int) {
	c.t.Helper()
	n := len(c.servers)
	var text strings.Builder
	fmt.Fprintf(&text, "server_name: s%d\nlisten: 127.0.0.1:%d\nmax_payload: 8MB\njetstream { store_dir: %q, sync_interval: always }\n", i, c.ports[i], filepath.Join(c.dir, strconv.Itoa(i)))
	if n > 1 {
		fmt.Fprintf(&text, "cluster { name: test, listen: 127.0.0.1:%d, routes: [%s] }\n", c.ports[n+i], c.routes)
	}
	text.WriteString("accounts {\n SYS { users: [{user: sys, password: sys}] }\n")
	for a := range accounts {
		fmt.Fprintf(&text, " A%d { jetstream: enabled, users: [{user: a%d, password: p}] }\n", a, a)
	}
	text.WriteString("}\nsystem_account: SYS\n")
	opts := &server.Options{NoLog: true, NoSigs: true, DisableJetStreamBanner: true}
	if err := opts.ProcessConfigString(text.String()); err != nil {
		c.t.Fatal(err)
	}
	s, err := server.NewServer(opts)
	if err != nil {
		c.t.Fatal(err)
	}
	s.Start()
	c.servers[i] = s
}

func (c *Cluster) ready(i int) {
	c.t.Helper()
	if !c.servers[i].ReadyForConnections(Patience) {
		c.t.Fatal("a NATS server does not come up")
	}
}

// Stop a server as a signal would; one that is stopped stays so.
func (c *Cluster) Stop(i int) {
	if c.servers[i] != nil {
		c.servers[i].Shutdown()
		c.servers[i].WaitForShutdown()
		c.servers[i] = nil
	}
}

// Restart a server that was stopped, on what it has stored.
func (c *Cluster) Restart(i int) {
	c.t.Helper()
	c.launch(i)
	c.ready(i)
}

// URLs of all servers, separated by commas.
func (c *Cluster) URLs() string {
	var urls []string
	for _, port := range c.ports[:len(c.servers)] {
		urls = append(urls, fmt.Sprintf("nats://127.0.0.1:%d", port))
	}
	return strings.Join(urls, ",")
}

// Account is the name of one that no other test has; the password is p.
func (c *Cluster) Account() string { return fmt.Sprintf("a%d", c.used.Add(1)-1) }

// Connect to an account. The connection ends with the test.
func (c *Cluster) Connect(t testing.TB, account string) jetstream.JetStream {
	t.Helper()
	return Dial(t, c.URLs(), account)
}

// Dial is Connect for another process.
func Dial(t testing.TB, urls, account string) jetstream.JetStream {
	t.Helper()
	nc, err := nats.Connect(urls, nats.UserInfo(account, "p"), nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond), nats.Timeout(Patience))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// Leader is which server leads a stream; -1: none just now.
func (c *Cluster) Leader(account, stream string) int {
	for i, s := range c.servers {
		if s == nil {
			continue
		}
		a, err := s.LookupAccount(strings.ToUpper(account))
		if err == nil && s.JetStreamIsStreamLeader(a.Name, stream) {
			return i
		}
	}
	return -1
}
