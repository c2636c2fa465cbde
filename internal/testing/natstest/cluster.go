// Package natstest runs a cluster of NATS servers for tests, each in a process of its own
// that can be killed, paused and cut off from the others.
package natstest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"aob.dev/writ/internal/clock"
)

// routes are lines of a log that come and go by the thousand.
var routes = regexp.MustCompile(`(?m)^.*Route.? connection .*\n`)

// Patience is how long something may take that surely comes.
const Patience = 3 * time.Minute

// nowhere is the address that servers advertise to each other: all their routes are links.
const nowhere = "127.0.0.1:1"

// accounts is how many tests may share a cluster.
const accounts = 64

// configVariable names the configuration of the server that a process is to be.
const configVariable = "WRIT_TEST_NATS"

// Main is to be called first by TestMain: the servers are processes of the test's program.
func Main() {
	file := os.Getenv(configVariable)
	if file == "" {
		return
	}
	if err := serve(file); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func serve(file string) error {
	opts, err := server.ProcessConfigFile(file)
	if err != nil {
		return err
	}
	opts.DisableJetStreamBanner = true
	s, err := server.NewServer(opts)
	if err != nil {
		return err
	}
	s.ConfigureLogger()
	s.Start()
	if !s.ReadyForConnections(Patience) {
		return errors.New("the NATS server does not come up")
	}
	if _, err := fmt.Println(s.Addr(), s.ClusterAddr()); err != nil { // learn reads them
		return err
	}
	go func() { // nobody kills the servers of a test that was killed
		parent := os.Getppid()
		_ = clock.Every(context.Background(), time.Second, func() bool { return os.Getppid() != parent })
		s.Shutdown()
	}()
	s.WaitForShutdown()
	return nil
}

// Cluster of servers that sync each message before they acknowledge it.
type Cluster struct {
	t       testing.TB
	dir     string
	text    string
	clients []*link   // to each; they retain its address while it is down
	links   [][]*link // from one to another
	servers []*process
	used    atomic.Int64
}

// process is a server that runs.
type process struct {
	*exec.Cmd
	known chan struct{} // closed when it has announced its address, or has ended
	err   error         // why it did not announce it; set before known is closed
}

// Start n servers, which end with the test. Each has accounts that tests may have for
// themselves.
func Start(t testing.TB, n int) *Cluster {
	t.Helper()
	var text strings.Builder
	text.WriteString("max_payload: 8MB\naccounts {\n")
	for a := range accounts {
		fmt.Fprintf(&text, " A%d { jetstream: enabled, users: [{user: a%d, password: p}] }\n", a, a)
	}
	text.WriteString("}\n")
	return StartWith(t, n, text.String())
}

// StartWith starts n servers whose configuration goes on with a text.
func StartWith(t testing.TB, n int, text string) *Cluster {
	t.Helper()
	c := &Cluster{t: t, dir: t.TempDir(), text: text, servers: make([]*process, n)}
	for i := range n {
		c.clients = append(c.clients, newLink(t))
		c.links = append(c.links, make([]*link, n))
		for k := range n {
			if k != i {
				c.links[i][k] = newLink(t)
			}
		}
	}
	t.Cleanup(func() {
		for i := range c.servers {
			c.Kill(i)
			if text, err := os.ReadFile(c.Log(i)); err == nil && t.Failed() {
				text = routes.ReplaceAll(text, nil)
				t.Logf("server %d said at last:\n%s", i, text[max(0, len(text)-4000):])
			}
		}
	})
	for i := range c.servers {
		c.Launch(i)
	}
	for i := range c.servers {
		c.ready(i)
	}
	return c
}

func (c *Cluster) config(i int) string {
	var text strings.Builder
	fmt.Fprintf(&text, "server_name: s%d\nlisten: 127.0.0.1:-1\nlog_file: %q\njetstream { store_dir: %q, sync_interval: always }\n",
		i, c.Log(i), filepath.Join(c.dir, strconv.Itoa(i)))
	if len(c.servers) > 1 {
		var routes []string
		for _, l := range c.links[i] {
			if l != nil {
				routes = append(routes, "nats://"+l.addr)
			}
		}
		fmt.Fprintf(&text, "cluster { name: test, no_advertise: true, advertise: %q, listen: 127.0.0.1:-1, routes: [%s] }\n", nowhere, strings.Join(routes, ", "))
	}
	text.WriteString(c.text)
	return text.String()
}

// Blocks are the files in which a server keeps the messages of a stream.
func (c *Cluster) Blocks(i int, account, stream string) []string {
	c.t.Helper()
	files, err := filepath.Glob(filepath.Join(c.dir, strconv.Itoa(i), "jetstream", strings.ToUpper(account), "streams", stream, "msgs", "*"))
	if err != nil || len(files) == 0 {
		c.t.Fatalf("server %d has no messages of stream %s: %v", i, stream, err)
	}
	return files
}

// Log is the file that a server logs to.
func (c *Cluster) Log(i int) string { return filepath.Join(c.dir, fmt.Sprintf("s%d.log", i)) }

// Launch starts a server on its stored data. It chooses its ports, which nobody else can have then,
// and the links lead to them.
func (c *Cluster) Launch(i int) {
	c.t.Helper()
	file := filepath.Join(c.dir, fmt.Sprintf("s%d.conf", i))
	if err := os.WriteFile(file, []byte(c.config(i)), 0o600); err != nil {
		c.t.Fatalf("configure NATS server %d: %v", i, err)
	}
	p := &process{Cmd: exec.CommandContext(context.WithoutCancel(c.t.Context()), os.Args[0]), known: make(chan struct{})} //nolint:gosec // G204: this program
	p.Env = append(os.Environ(), configVariable+"="+file)
	p.Stderr = os.Stderr
	said, err := p.StdoutPipe()
	if err == nil {
		err = p.Start()
	}
	if err != nil {
		c.t.Fatalf("launch NATS server %d: %v", i, err)
	}
	c.servers[i] = p
	go func() {
		defer close(p.known)
		var client, route string
		if _, p.err = fmt.Fscanln(said, &client, &route); p.err == nil {
			c.aim(i, client, route)
		}
	}()
}

// aim the links to a server at where it listens; nowhere, if that is empty.
func (c *Cluster) aim(i int, client, route string) {
	c.clients[i].aim(client)
	for k := range c.links {
		if k != i {
			c.links[k][i].aim(route)
		}
	}
}

func (c *Cluster) ready(i int) {
	c.t.Helper()
	select {
	case <-c.servers[i].known:
	case <-time.After(Patience):
		c.t.Fatalf("NATS server %d has not said in %s where it listens", i, Patience)
	}
	if err := c.servers[i].err; err != nil {
		c.t.Fatalf("NATS server %d ended before it said where it listens: %v", i, err)
	}
}

// Kill a server at once. One that is not there stays so.
func (c *Cluster) Kill(i int) {
	if p := c.servers[i]; p != nil {
		_ = p.Process.Kill()
		_ = p.Wait()
		<-p.known
		c.aim(i, "", "") // another process may have its ports now
		c.servers[i] = nil
	}
}

// Hold pauses a server, and Continue resumes it.
func (c *Cluster) Hold(i int) { c.signal(i, syscall.SIGSTOP) }

// Continue ends Hold.
func (c *Cluster) Continue(i int) { c.signal(i, syscall.SIGCONT) }

func (c *Cluster) signal(i int, s os.Signal) {
	c.t.Helper()
	if err := c.servers[i].Process.Signal(s); err != nil {
		c.t.Fatalf("%s to NATS server %d: %v", s, i, err)
	}
}

// Cut a server off from all others; its clients still reach it. Mend ends that.
func (c *Cluster) Cut(i int) { c.set(i, true) }

// Mend ends Cut.
func (c *Cluster) Mend(i int) { c.set(i, false) }

func (c *Cluster) set(i int, cut bool) {
	for k := range c.servers {
		if k != i {
			c.links[i][k].set(cut)
			c.links[k][i].set(cut)
		}
	}
}

// URLs of all servers.
func (c *Cluster) URLs() []string { return urls(c.clients) }

// Account is the name of one that no other test has.
func (c *Cluster) Account() string { return fmt.Sprintf("a%d", c.used.Add(1)-1) }

// Connect to an account, until the test ends.
func (c *Cluster) Connect(t testing.TB, account string) jetstream.JetStream {
	t.Helper()
	js, err := Dial(strings.Join(c.URLs(), ","), account)
	if err != nil {
		t.Fatalf("connect to account %s of %v: %v", account, c.URLs(), err)
	}
	t.Cleanup(js.Conn().Close)
	return js
}

// Dial an account from any process, and come back whenever the connection is lost.
func Dial(urls, account string) (jetstream.JetStream, error) {
	nc, err := nats.Connect(urls, nats.UserInfo(account, "p"), nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond), nats.Timeout(2*time.Second), // a server that is held takes connections, and says nothing
		nats.PingInterval(2*time.Second), nats.MaxPingsOutstanding(2))
	if err != nil {
		return nil, err
	}
	return jetstream.New(nc)
}

// Leader is the server that leads a stream, as soon as one does and all others are up to date:
// a server that is not back yet may not be missing a second one.
func (c *Cluster) Leader(js jetstream.JetStream, stream string) int {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), Patience)
	defer cancel()
	var last any
	for ctx.Err() == nil {
		ask, done := context.WithTimeout(ctx, time.Second)
		s, err := js.Stream(ask, stream)
		done()
		if err != nil {
			last = err
			continue
		}
		info := s.CachedInfo().Cluster
		last = fmt.Sprintf("%+v", info)
		if info == nil || len(info.Replicas) < len(c.servers)-1 || slices.ContainsFunc(info.Replicas, func(r *jetstream.PeerInfo) bool { return !r.Current || r.Offline }) {
			_ = clock.Sleep(ctx, 20*time.Millisecond)
			continue
		}
		if i, err := strconv.Atoi(strings.TrimPrefix(info.Leader, "s")); err == nil {
			return i
		}
	}
	c.t.Fatalf("the servers do not agree on stream %s in %s: %v", stream, Patience, last)
	return -1
}
