package e2e

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"aob.dev/writ/cell"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/cli"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/node"
	"aob.dev/writ/internal/testing/natstest"
	"aob.dev/writ/policies"
)

// cellVariable has start make a cell on three NATS servers, in place of one node: each role is
// two nodes of their own, with their own keys and connections. The documents are in the
// OpenSearch that WRIT_TEST_OPENSEARCH names.
const cellVariable = "WRIT_TEST_CELL"

// inCell reports whether start makes cells.
func inCell() bool { return os.Getenv(cellVariable) != "" }

// startCell is start in a cell.
func startCell(t *testing.T, s setup) *system {
	t.Helper()
	at := filepath.Join(t.TempDir(), "cell")
	engine, err := policies.Feed{}.Engine()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cell.Create(at, engine, catalog.Builtin()); err != nil {
		t.Fatal(err)
	}
	c := &celled{T: t, setup: s, at: at, seeds: filepath.Join(t.TempDir(), "seeds")}
	text, _, err := cell.Accounts(c.processes(), nil, c.seeds)
	if err != nil {
		t.Fatal(err)
	}
	c.public = c.door.open(t)
	c.urls = natstest.StartWith(t, 3, string(text)).URLs()
	c.blobs = natsServer(t, fmt.Appendf(nil, "listen: 127.0.0.1:-1\njetstream { store_dir: %q }\n", t.TempDir()))
	key, err := node.BeginCell(t.Context(), c.config("router", "a"), at)
	if err != nil {
		t.Fatal(err)
	}
	return c.run(key)
}

// celled is a cell that start makes.
type celled struct {
	*testing.T
	setup
	at, seeds, blobs   string
	urls               []string // of NATS
	routers, recorders []string // of HTTP
	door               door
	public             string // where that is

	skilled []string // data directories of the skills executors

	mu       sync.Mutex // guards proposed
	proposed []string   // commands that approve skills
}

var twice = []string{"a", "b"}

// nameOf is the name of a role on the bus.
func nameOf(role string) string { return strings.TrimPrefix(role, "executor:") }

func (c *celled) processes() (out []string) {
	for _, role := range append(node.Roles(), "frames") {
		for _, instance := range twice {
			if role != "monitor" {
				out = append(out, nameOf(role)+":"+instance)
			}
		}
	}
	return out
}

// config of a process of one role.
func (c *celled) config(role, instance string) node.Config {
	c.Helper()
	keys := role
	if nameOf(role) != role {
		keys = "executors"
	}
	cfg := node.Config{
		Dir: filepath.Join(c.TempDir(), "data"), Documents: documents(c.at), Blobs: datadir.BlobsAt{URL: c.blobs}, Listen: "127.0.0.1:0", PublicURL: c.public,
		AgentHosts: c.Hosts, Model: c.Model, Limits: c.Limits, Routing: c.Routing, Now: c.Now, Policy: policies.Feed{Extensions: c.Extensions},
		Cluster: &node.Cluster{
			Roles: []string{role}, Bus: cell.Bus{URLs: c.urls, Seeds: c.seeds, Instance: instance}, Keys: []string{cell.Keys(c.at, keys)},
			Routers: c.routers, Recorders: c.recorders,
		},
		Log: slog.New(slog.NewTextHandler(c, &slog.HandlerOptions{Level: slog.LevelInfo})).With(slog.String("process", role+" "+instance)),
	}
	if role == "executor:skills" {
		cfg.Skills, c.skilled = c.Skills, append(c.skilled, cfg.Dir)
	}
	return cfg
}

// Write implements io.Writer: it is the log of the processes.
func (c *celled) Write(line []byte) (int, error) {
	for _, m := range approveLine.FindAllSubmatch(line, -1) {
		c.mu.Lock()
		c.proposed = append(c.proposed, string(m[1]))
		c.mu.Unlock()
	}
	if strings.Contains(string(line), "level=INFO") {
		return len(line), nil
	}
	return c.Output().Write(line)
}

func (c *celled) start(role, instance string) *node.Node {
	c.Helper()
	n, stop, err := node.Start(context.WithoutCancel(c.Context()), c.config(role, instance)) // t's own ends before the clean-up
	if err != nil {
		c.Fatalf("%s %s: %v", role, instance, err)
	}
	c.Cleanup(func() {
		if err := stop(); err != nil {
			c.Errorf("%s %s: %v", role, instance, err)
		}
	})
	return n
}

func (c *celled) run(key string) *system {
	c.Helper()
	out := &system{t: c.T, dir: c.copied(), key: key, url: c.public}
	for _, role := range slices.Concat([]string{"recorder", "router"}, node.Roles()) {
		for i, instance := range twice {
			switch {
			case role == "recorder" && len(c.recorders) < len(twice):
				c.recorders = append(c.recorders, "http://"+c.start(role, instance).Addr().String())
			case role == "router" && len(c.routers) < len(twice):
				n := c.start(role, instance)
				c.routers = append(c.routers, "http://"+n.Addr().String())
				if i == 0 {
					out.node = n
				}
			case role == "gateway":
				c.door.to = append(c.door.to, &url.URL{Scheme: "http", Host: c.start(role, instance).Addr().String()})
			case role != "recorder" && role != "router":
				c.start(role, instance)
			}
		}
	}
	out.skilled = c.skilled
	c.prepare(out)
	return out
}

// door gives requests to one gateway after the other, and those of the console to one alone,
// which has its sessions.
type door struct {
	n  atomic.Uint32
	to []*url.URL // set before the first request
}

func (d *door) choose(path string) *url.URL {
	if strings.HasPrefix(path, "/console") {
		return d.to[0]
	}
	return d.to[int(d.n.Add(1))%len(d.to)]
}

func (d *door) open(t *testing.T) (at string) {
	t.Helper()
	srv := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(d.choose(r.In.URL.Path)); r.Out.Host = r.In.Host }, FlushInterval: -1})
	t.Cleanup(srv.Close)
	return srv.URL
}

// copied is a data directory like that of one node.
func (c *celled) copied() (dir string) {
	c.Helper()
	dir = filepath.Join(c.TempDir(), "copy")
	cfg := c.config("recorder", "a")
	if _, err := (cell.Copy{Bus: cfg.Cluster.Bus, Blobs: cfg.Blobs, Log: cfg.Log}).Make(c.Context(), c.at, dir); err != nil {
		c.Fatal(err)
	}
	return dir
}

// prepare does as the operator what one node does by itself: it approves skills on first
// sight, and puts the agents of a directory in force.
func (c *celled) prepare(s *system) {
	c.Helper()
	operator := []string{"--url", s.url, "--signer", filepath.Join(s.dir, "keys", "operator.pem")}
	c.mu.Lock()
	lines := slices.Compact(slices.Sorted(slices.Values(c.proposed)))
	c.mu.Unlock()
	for _, line := range lines {
		c.command(append(append([]string{"skill", "approve"}, strings.Fields(line)...), operator...)...)
	}
	if c.Agents != "" {
		c.command(append([]string{"registry", "push", c.Agents, "--data", s.dir}, operator...)...)
	}
	if status, p := s.call(s.as("local"), http.MethodGet, "/readyz", nil, nil); status != http.StatusOK {
		c.Fatalf("HTTP %d %+v", status, p)
	}
}

func (c *celled) command(args ...string) {
	c.Helper()
	var said strings.Builder
	if code := cli.Main(c.Context(), args, cli.IO{In: strings.NewReader(""), Out: &said, Err: &said, Env: c.env}); code != 0 {
		c.Fatalf("writ %s: exit %d: %s", strings.Join(args, " "), code, said.String())
	}
}

// natsServer runs a nats-server with a configuration.
func natsServer(t *testing.T, config []byte) (url string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "nats.conf")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		t.Fatal(err)
	}
	return natstest.Standalone(t, file).ClientURL()
}

var approveLine = regexp.MustCompile(`writ skill approve ([^"\\]+)`)

// env of commands has what the configuration of one node has.
func (c *celled) env(name string) string {
	if name == "WRIT_AGENT_HOSTS" {
		return strings.Join(c.Hosts, ",")
	}
	return ""
}
