package e2e

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/agentic/model/offline"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/cli"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/demo"
	"aob.dev/writ/internal/node"
)

// beWrit does not return in a process that was started as writ: this test
// binary then is the command line.
func beWrit() {
	if filepath.Base(os.Args[0]) != "writ" {
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	os.Exit(cli.Main(ctx, os.Args[1:], cli.IO{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.Getenv})) //nolint:gocritic // exitAfterDefer: nobody is left to be signalled
}

// patience bounds what must happen by itself.
const patience = time.Minute

// freeAddress is one that nobody listens on, nor will by chance until a process does: it is
// below those that a system gives to whoever asks for any.
func freeAddress(t *testing.T) string {
	t.Helper()
	for range 100 {
		l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", fmt.Sprintf("127.0.0.1:%d", 10000+rand.IntN(20000)))
		if err == nil {
			_ = l.Close()
			return l.Addr().String()
		}
	}
	t.Fatal("there is no free port")
	return ""
}

// machine is a data directory and the writ that runs on it, in a process of its
// own that can be killed.
type machine struct {
	*system
	exe     string // the writ to run; empty: this binary
	args    []string
	headers map[string]string // of requests for turns
	cmd     *exec.Cmd
	ended   chan struct{}
	stderr  outputBuffer // of the last process; complete when ended is closed
}

// outputBuffer is what a process has written so far.
type outputBuffer struct {
	mu   sync.Mutex // guards text
	text []byte
}

func (s *outputBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text = append(s.text, p...)
	return len(p), nil
}

func (s *outputBuffer) Bytes() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return bytes.Clone(s.text)
}

func (s *outputBuffer) String() string { return string(s.Bytes()) }

func (s *outputBuffer) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text = nil
}

// boot makes a machine whose model is m, over HTTP, and starts it.
func boot(t *testing.T, m model.Model, skills string, more ...string) *machine {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	x := &machine{system: &system{t: t, dir: dir, setup: setup{Now: time.Now}}, args: append([]string{
		"up", "--data", dir, "--listen", "127.0.0.1:0", "--skills", trusted([]string{skills})[0], "--rate-limit", "0", // a test asks again and again how far a plan is
		"--model", "openai:mock", "--model-url", serveModel(t, m),
	}, more...)}
	t.Cleanup(func() {
		if x.cmd != nil {
			x.end(syscall.SIGKILL)
		}
		if t.Failed() {
			t.Logf("the last writ said:\n%s", x.stderr.Bytes())
		} else if x.Unaudited == "" {
			x.sound(context.WithoutCancel(t.Context()))
		}
	})
	x.start()
	return x
}

var announcement = regexp.MustCompile(`^(?:writ is up|\S.* as \S+) on (http://\S+) in `)

// start runs writ and waits until it prints its address.
func (x *machine) start() {
	x.t.Helper()
	announced := x.run(append(append(os.Environ(), "WRIT_MODEL_KEY=sk-test"), documentsEnv(x.dir)...))
	select {
	case x.url = <-announced:
	case <-x.ended:
		x.t.Fatalf("writ up ended: %v", x.cmd.ProcessState)
	case <-time.After(patience):
		x.t.Fatal("writ up says nothing")
	}
	var err error
	if x.key, err = datadir.LocalKey(x.dir); err != nil {
		x.t.Fatal(err)
	}
}

// run starts a process, which announces its address unless it ends before.
func (x *machine) run(env []string) (announced chan string) {
	x.t.Helper()
	exe := x.exe
	if exe == "" {
		var err error
		if exe, err = os.Executable(); err != nil {
			x.t.Fatal(err)
		}
	}
	x.cmd = exec.Command(exe)
	x.cmd.Args = append([]string{"writ"}, x.args...)
	x.cmd.Env = env
	x.stderr.Reset()
	stderr, err := x.cmd.StderrPipe()
	if err != nil {
		x.t.Fatal(err)
	}
	if err := x.cmd.Start(); err != nil {
		x.t.Fatal(err)
	}
	announced = make(chan string, 1)
	x.ended = make(chan struct{})
	go x.follow(stderr, announced)
	return announced
}

func (x *machine) follow(stderr io.Reader, announced chan<- string) {
	defer close(x.ended)
	lines := bufio.NewScanner(io.TeeReader(stderr, &x.stderr))
	lines.Buffer(nil, 1<<20)
	var once sync.Once
	for lines.Scan() {
		if m := announcement.FindStringSubmatch(lines.Text()); m != nil {
			once.Do(func() { announced <- m[1] })
		}
	}
	_ = x.cmd.Wait() // its state is asked for
}

// kill is kill -9: nothing of the process gets a chance to end well.
func (x *machine) kill() {
	x.t.Helper()
	x.end(syscall.SIGKILL)
}

func (x *machine) end(sig syscall.Signal) {
	x.t.Helper()
	_ = x.cmd.Process.Signal(sig) // it may have ended by itself, which is seen below
	select {
	case <-x.ended:
	case <-time.After(patience):
		x.t.Fatal("writ up does not end")
	}
	if status, ok := x.cmd.ProcessState.Sys().(syscall.WaitStatus); sig == syscall.SIGKILL && (!ok || !status.Signaled()) {
		x.t.Fatalf("writ up had ended by itself: %v", x.cmd.ProcessState)
	}
	x.cmd = nil
}

// ask has the parcels weighed and follows its stream until fn says that it has seen
// enough; it returns the plan's id.
func (x *machine) ask(enough func(event, data string) bool) (plan string) {
	x.t.Helper()
	return x.post(`{"stream":true,"message":"Weigh the parcels"}`, enough)
}

// post is ask with a body of one's own for POST /agent/run, which asks for a stream.
func (x *machine) post(body string, enough func(event, data string) bool) (plan string) {
	x.t.Helper()
	return x.postTo("/agent/run", body, enough)
}

func (x *machine) postTo(route, body string, enough func(event, data string) bool) (plan string) {
	x.t.Helper()
	req, err := http.NewRequestWithContext(x.t.Context(), http.MethodPost, x.url+route, strings.NewReader(body))
	if err != nil {
		x.t.Fatal(err)
	}
	req.Header.Set("X-Api-Key", x.key)
	req.Header.Set("Content-Type", "application/json")
	for name, value := range x.headers {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		x.t.Fatal(err)
	}
	defer resp.Body.Close()
	plan = resp.Header.Get("X-Plan-Id")
	if resp.StatusCode != http.StatusOK || plan == "" {
		x.t.Fatalf("HTTP %d, plan %q", resp.StatusCode, plan)
	}
	var name string
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		switch field, value, _ := bytes.Cut(lines.Bytes(), []byte(": ")); string(field) {
		case "event":
			name = string(value)
		case "data":
			if enough(name, string(value)) {
				return plan
			}
		}
	}
	x.t.Fatal("the stream ended before enough was seen")
	return ""
}

// accepted has seen enough when the plan is there.
func accepted(string, string) bool { return true }

// plan reads a plan.
func (x *machine) plan(id string) catalog.PlanView {
	x.t.Helper()
	var v catalog.PlanView
	if status, p := x.call(x.as("local"), http.MethodGet, "/agent/plans/"+id, nil, &v); status != http.StatusOK {
		x.t.Fatalf("plan: HTTP %d %+v", status, p)
	}
	return v
}

// finished waits until a plan is complete or failed.
func (x *machine) finished(id string) catalog.PlanView {
	x.t.Helper()
	deadline := time.After(patience)
	look := time.NewTicker(250 * time.Millisecond) // well within the rate limit
	defer look.Stop()
	for {
		v := x.plan(id)
		if v.Status == catalog.PlanComplete || v.Status == catalog.PlanFailed {
			return v
		}
		select {
		case <-look.C:
		case <-deadline:
			x.t.Fatalf("the plan does not end: %+v", v)
		}
	}
}

// records stops writ and reads the intents of a plan from its data directory,
// after every intent and receipt of the journal has been verified again.
func (x *machine) records(plan string) []intent {
	x.t.Helper()
	x.end(syscall.SIGTERM)
	n, err := node.Open(x.t.Context(), node.Config{Dir: x.dir, Documents: documents(x.dir), Model: offline.Model{}, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		x.t.Fatal(err)
	}
	defer func() {
		if err := n.Close(); err != nil {
			x.t.Error(err)
		}
	}()
	list, v, err := demo.Verify(x.t.Context(), n)
	if err != nil || !v.OK || v.Intents != int64(len(list)) {
		x.t.Fatalf("journal: %+v %v", v, err)
	}
	return (&system{t: x.t, node: n}).intents(plan)
}
