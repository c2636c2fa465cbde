//go:build integration

package e2e

import (
	"bytes"
	"cmp"
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"aob.dev/writ/internal/client"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/demo"
	"aob.dev/writ/internal/demo/quakes"
	"aob.dev/writ/internal/testing/opensearchtest"
)

// programCell is a cell whose processes are those of the program, as an operator makes it: with
// writ admin cell create, accounts and serve.
type programCell struct {
	*testing.T
	dir, seeds, config string
}

// makeCell makes a cell with processes ROLE:NAME. serve starts the servers of a NATS cluster
// with what writ admin cell accounts has printed, and says where they are. The documents are in the
// OpenSearch that tests share, and the blobs in another server's object store.
func makeCell(t *testing.T, serve func(accounts []byte) (urls []string), processes ...string) *programCell {
	t.Helper()
	at := t.TempDir()
	c := &programCell{T: t, dir: filepath.Join(at, "cell"), seeds: filepath.Join(at, "nats-keys"), config: filepath.Join(at, "writ.yaml")}
	accounts := []string{"admin", "cell", "accounts", "--keys", c.seeds}
	for _, p := range processes {
		accounts = append(accounts, "--process", p)
	}
	urls := serve([]byte(c.writ(accounts...)))
	blobs := natsServer(t, fmt.Appendf(nil, "listen: 127.0.0.1:-1\njetstream { store_dir: %q }\n", t.TempDir()))
	text := fmt.Sprintf("documents: %s\ndocuments_prefix: %s\nblobs: %s\nbus_keys: %s\nlisten: 127.0.0.1:0\nrate_limit: 0\nbus: [%s]\n", opensearchtest.Shared(t), prefix("p", at), blobs, c.seeds, strings.Join(urls, ", "))
	if err := os.WriteFile(c.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if origin := c.writ("admin", "cell", "create", c.dir); !strings.HasPrefix(origin, "writ/") {
		t.Fatalf("origin %q", origin)
	}
	return c
}

// writ runs a command to its end and gives what it prints.
func (c *programCell) writ(args ...string) string {
	c.Helper()
	out, err := c.tryWrit(args...)
	if err != nil {
		c.Fatalf("writ %s: %v", strings.Join(args, " "), err)
	}
	return out
}

func (c *programCell) tryWrit(args ...string) (string, error) {
	c.Helper()
	exe, err := os.Executable()
	if err != nil {
		c.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(c.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, exe)
	cmd.Args = append([]string{"writ"}, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%w\n%s", err, errs.Bytes())
	}
	return strings.TrimSpace(out.String()), nil
}

// serve starts a process of some roles and waits until it serves. more are further flags.
func (c *programCell) serve(instance string, roles []string, more ...string) *machine {
	c.Helper()
	args := append([]string{"admin", "cell", "serve"}, roles...)
	args = append(args, "--config", c.config, "--instance", instance, "--data", c.TempDir())
	for _, role := range roles {
		if strings.HasPrefix(role, "executor:") {
			role = "executors"
		}
		args = append(args, "--keys", filepath.Join(c.dir, role, "keys"))
	}
	x := &machine{system: &system{t: c.T}, args: append(args, more...)}
	c.Cleanup(func() {
		if x.cmd != nil {
			x.end(syscall.SIGTERM)
		}
		if c.Failed() {
			c.Logf("%v said:\n%s", roles, x.stderr.Bytes())
		}
	})
	announced := x.run(os.Environ())
	select {
	case x.url = <-announced:
	case <-x.ended:
		c.Fatalf("%v ended: %v", roles, x.cmd.ProcessState)
	case <-time.After(patience):
		c.Fatalf("%v say nothing", roles)
	}
	return x
}

// approve approves the skills as the log advises, like the operator.
func (c *programCell) approve(skills *machine, url string) {
	c.Helper()
	lines := approveLine.FindAllStringSubmatch(skills.stderr.String(), -1)
	if len(lines) == 0 {
		c.Fatalf("no skill is proposed:\n%s", skills.stderr.Bytes())
	}
	for _, m := range lines {
		args := append([]string{"skill", "approve"}, strings.Fields(m[1])...)
		c.writ(append(args, "--url", url, "--signer", filepath.Join(c.dir, "operator", "keys", "operator.pem"))...)
	}
}

// rotate the key of a role, and give the public keys to all, to the role itself last.
func (c *programCell) rotate(role, url string) {
	c.Helper()
	c.writ("admin", "keys", "rotate", role, "--data", filepath.Join(c.dir, role), "--url", url,
		"--root", filepath.Join(c.dir, "root", "keys", "root.pem"), "--signer", filepath.Join(c.dir, "operator", "keys", "operator.pem"))
	resp, err := http.Get(url + "/.well-known/jwks.json")
	if err != nil {
		c.Fatal(err)
	}
	defer resp.Body.Close()
	set, err := io.ReadAll(resp.Body)
	if err != nil {
		c.Fatal(err)
	}
	for _, to := range []string{"executors", "gateway", "manager", "planner", "task", "workflow", "monitor", "recorder", role} {
		if err := os.WriteFile(filepath.Join(c.dir, to, "keys", "jwks.json"), set, 0o600); err != nil {
			c.Fatal(err)
		}
	}
}

// certified makes a certificate for this machine, which signs itself, and its key.
func certified(t *testing.T) (certFile, keyFile string) {
	t.Helper()
	srv := httptest.NewTLSServer(nil) // it brings them
	defer srv.Close()
	key, err := x509.MarshalPKCS8PrivateKey(srv.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile = filepath.Join(t.TempDir(), "tls.crt"), filepath.Join(t.TempDir(), "tls.key")
	for file, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}, keyFile: {Type: "PRIVATE KEY", Bytes: key}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certFile, keyFile
}

// TestIntegrationCell: a cell on OpenSearch and over TLS answers, also after its router's key was
// rotated and when the recorder that records is killed: the other one goes on.
func TestIntegrationCell(t *testing.T) {
	c := makeCell(t, func(accounts []byte) []string {
		certFile, keyFile := certified(t)
		t.Setenv("WRIT_BUS_CA", certFile)
		url := natsServer(t, append(fmt.Appendf(nil, "listen: 127.0.0.1:-1\njetstream { store_dir: %q, sync_interval: always }\ntls { cert_file: %q, key_file: %q }\n", t.TempDir(), certFile, keyFile), accounts...))
		if !strings.HasPrefix(url, "tls://") {
			t.Fatalf("the server is at %s", url)
		}
		return []string{url}
	}, "gateway:g1", "frames:g1", "router:r1", "recorder:c1", "recorder:c2", "manager:t1", "planner:t1", "task:t1", "workflow:t1",
		"artifacts:e1", "files:e1", "knowledge:e1", "logs:e1", "memory:e1", "plans:e1", "python:e1", "sessions:e1", "skills:e1")
	if out, err := c.tryWrit("admin", "cell", "serve", "router", "--config", c.config, "--instance", "r1", "--data", t.TempDir(), "--keys", filepath.Join(c.dir, "router", "keys")); err == nil || !strings.Contains(err.Error(), "writ admin cell begin") {
		t.Fatalf("a cell without a log: %s, %v", out, err)
	}
	key := c.writ("admin", "cell", "begin", c.dir, "--config", c.config, "--instance", "r1")
	feed, err := quakes.Serve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	first := c.serve("c1", []string{"recorder"})
	second := c.serve("c2", []string{"recorder"})
	recorders := []string{"--recorders", first.url, "--recorders", second.url}
	router := c.serve("r1", []string{"router"}, recorders...)
	c.serve("t1", []string{"manager", "planner", "task", "workflow"})
	skills := c.serve("e1", []string{
		"executor:artifacts", "executor:files", "executor:knowledge", "executor:logs", "executor:memory", "executor:plans", "executor:python", "executor:sessions", "executor:skills",
	}, "--skills", feed)
	c.serve("m1", []string{"monitor"})
	gateway := c.serve("g1", []string{"gateway"}, append(recorders, "--routers", router.url)...)
	c.approve(skills, gateway.url)

	ask := func() {
		t.Helper()
		turn := client.Turn{}
		if _, err := (client.Client{URL: gateway.url, Key: key}).Run(t.Context(), demo.Question, turn.Take); err != nil || turn.Status != "complete" {
			t.Fatalf("%v: %s: %s", err, turn.Status, turn.Response)
		}
	}
	size := func() (text string) {
		t.Helper()
		resp, err := http.Get(gateway.url + "/ledger/checkpoint")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		raw, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			return ""
		}
		return strings.Split(string(raw), "\n")[1]
	}
	ask()
	status := c.writ("admin", "cell", "status", "--config", c.config, "--instance", "r1", "--keys", filepath.Join(c.dir, "router", "keys"))
	if !strings.Contains(status, "recorder  c1") || !strings.Contains(status, "router    r1") {
		t.Errorf("status:\n%s", status)
	}
	c.rotate("router", gateway.url)
	ask()
	before := size()
	first.kill()
	within, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := clock.Every(within, 100*time.Millisecond, func() bool { now := size(); return now != "" && now != before }); err != nil {
		t.Fatal("no other one records")
	}
	ask()
}

// TestIntegrationInCell runs tests of agents and of the console again, in a process of their own, each in a cell
// on three NATS servers where every role is two processes, with the documents in an OpenSearch.
// They know nothing of it.
func TestIntegrationInCell(t *testing.T) {
	t.Parallel()
	suite := cmp.Or(os.Getenv(suiteVariable), "^Test(Tasks|ApprovedTurn|Cancel|SideBySide|DroppedClients|AskIsShown|ConsoleApproval)$")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, "-test.run", suite, "-test.v", "-test.timeout=40m", "-test.parallel=1")
	cmd.Env = append(os.Environ(), cellVariable+"=1", "WRIT_TEST_OPENSEARCH="+opensearchtest.Shared(t))
	out, err := cmd.CombinedOutput()
	text := string(out)
	passed := strings.Count(text, "\n--- PASS: Test")
	if err != nil || passed < 7 || strings.Contains(text, "--- SKIP") {
		t.Fatalf("%d tests passed: %v\n%s", passed, err, text)
	}
	t.Logf("%d tests passed", passed)
}

// suiteVariable names other tests for TestIntegrationInCell.
const suiteVariable = "WRIT_TEST_CELL_SUITE"
