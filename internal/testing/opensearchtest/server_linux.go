// Package opensearchtest starts OpenSearch servers of its own on loopback, without a
// container engine. The servers are what .ci/opensearch unpacks; a test that finds
// none fails, it is never skipped.
package opensearchtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// nobody is the server's uid if we are root, which OpenSearch refuses.
const nobody = 65534

// startTime bounds how long a server may take until it answers.
const startTime = 5 * time.Minute

// Options of a server. The zero value is the newest version without security.
type Options struct {
	Secure   bool              // 2.19.4 with the security plugin in place of 3.6.0 with k-NN
	Port     int               // 0: a free one
	Settings string            // more lines of opensearch.yml
	Files    map[string][]byte // more files of the configuration directory, by relative path
	// Ready checks that the server answers; nil: its health does, without TLS.
	Ready func(ctx context.Context, url string) error
}

// Server is one process with a data directory of its own.
type Server struct {
	URL string // without a path

	options Options
	home    string
	java    string
	dir     string
	out     tail

	mu     sync.Mutex // guards process and exited, which change together
	cmd    *exec.Cmd
	exited chan struct{}
}

// Start starts a server and waits until it answers.
func Start(ctx context.Context, o Options) (s *Server, err error) {
	s = &Server{options: o}
	version, java := "3.6.0", "WRIT_OPENSEARCH_JAVA"
	if o.Secure {
		version, java = "2.19.4", "WRIT_OPENSEARCH_JAVA_2"
	}
	s.home, s.java = filepath.Join(os.Getenv("WRIT_OPENSEARCH_HOME"), version), os.Getenv(java)
	if os.Getenv("WRIT_OPENSEARCH_HOME") == "" || s.java == "" {
		return nil, errors.New(`there is no OpenSearch to start: run "make integration", or ".ci/opensearch fetch" and then eval "$(.ci/opensearch env)"`)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if err := s.configure(ctx); err != nil {
		return s, err
	}
	return s, s.Run(ctx)
}

// Shared is the URL of a server shared by tests that do it no harm, each with a prefix of its own:
// WRIT_OPENSEARCH_URL names it, as make integration does; without it the test starts one.
func Shared(t testing.TB) string {
	t.Helper()
	if url := os.Getenv("WRIT_OPENSEARCH_URL"); url != "" {
		return url
	}
	return Own(t).URL
}

// Own starts a server that ends with the test.
func Own(t testing.TB) *Server {
	t.Helper()
	s, err := Start(context.Background(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// configure makes the directory of the server, for whoever will run it.
func (s *Server) configure(ctx context.Context) error {
	var err error
	if s.dir, err = os.MkdirTemp("", "opensearch-"); err != nil {
		return err
	}
	scheme := "http"
	if s.options.Secure {
		scheme = "https"
	}
	port := s.options.Port
	if port == 0 {
		if port, err = freePort(ctx); err != nil {
			return err
		}
	}
	s.URL = fmt.Sprintf("%s://127.0.0.1:%d", scheme, port)
	jvm, err := s.jvmOptions()
	if err != nil {
		return err
	}
	settings := fmt.Sprintf(`cluster.name: writ
node.name: writ
discovery.type: single-node
network.host: 127.0.0.1
http.port: %d
transport.port: 9300-9999
path.data: %[2]s/data
path.logs: %[2]s/logs
cluster.routing.allocation.disk.threshold_enabled: false
cluster.max_shards_per_node: 5000
%[3]s`, port, s.dir, s.options.Settings)
	files := map[string][]byte{
		"config/opensearch.yml": []byte(settings),
		"config/jvm.options":    jvm,
		"config/log4j2.properties": []byte("status = error\nappender.console.type = Console\nappender.console.name = console\n" +
			"appender.console.layout.type = PatternLayout\nappender.console.layout.pattern = [%d{ISO8601}][%-5p][%c{1.}] %m%n\n" +
			"rootLogger.level = warn\nrootLogger.appenderRef.console.ref = console\n"),
		"data/.keep": nil, "logs/.keep": nil, "tmp/.keep": nil, "config/jvm.options.d/.keep": nil,
	}
	for name, content := range s.options.Files {
		files[filepath.Join("config", name)] = content
	}
	for name, content := range files {
		path := filepath.Join(s.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return err
		}
	}
	if os.Geteuid() != 0 {
		return nil
	}
	return filepath.WalkDir(s.dir, func(path string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, nobody, nobody)) //nolint:gosec // G122: a directory of our own, which nobody else writes to
	})
}

// jvmOptions are those of the distribution without the files that it would
// write beside its own, and without its garbage collector, which is for large heaps.
func (s *Server) jvmOptions() ([]byte, error) {
	raw, err := os.ReadFile(filepath.Join(s.home, "config", "jvm.options"))
	if err != nil {
		return nil, fmt.Errorf("%w: run .ci/opensearch fetch", err)
	}
	var kept bytes.Buffer
	for line := range bytes.Lines(raw) {
		if !bytes.Contains(line, []byte("logs/")) && !bytes.Contains(line, []byte("HeapDump")) && !bytes.Contains(line, []byte(":-XX:+UseG1GC")) {
			kept.Write(line)
		}
	}
	return kept.Bytes(), nil
}

// shortLived are options of a Java that serves for minutes: a compiler that takes less time, and
// a garbage collector without threads of its own, halve what a server costs.
const shortLived = "-Xms512m -Xmx1g -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

// Run starts the process, again after Kill on the same data, and waits until it
// answers.
func (s *Server) Run(ctx context.Context) error {
	cmd := exec.Command(filepath.Join(s.home, "bin", "opensearch")) //nolint:gosec,noctx // G204: our own unpacked server, which outlives ctx
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir, "JAVA_HOME=" + s.java, "OPENSEARCH_JAVA_HOME=" + s.java,
		"OPENSEARCH_PATH_CONF=" + filepath.Join(s.dir, "config"), "OPENSEARCH_TMPDIR=" + filepath.Join(s.dir, "tmp"),
		"OPENSEARCH_JAVA_OPTS=" + shortLived,
	}
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.dir, &s.out, &s.out
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if os.Geteuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
	}
	started, exited := make(chan error), make(chan struct{})
	go func() {
		// The death signal comes when the thread that started the process ends.
		runtime.LockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // its output says more
		}
		close(exited)
	}()
	if err := <-started; err != nil {
		return err
	}
	s.mu.Lock()
	s.cmd, s.exited = cmd, exited
	s.mu.Unlock()
	return s.wait(ctx, exited)
}

func (s *Server) wait(ctx context.Context, exited <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	ready := s.options.Ready
	if ready == nil {
		ready = healthy
	}
	for {
		err := ready(ctx, s.URL)
		if err == nil {
			return nil
		}
		select {
		case <-exited:
			return fmt.Errorf("opensearch ended: %s", s.out.String())
		case <-ctx.Done():
			return fmt.Errorf("opensearch does not answer: %w\n%s", err, s.out.String())
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func healthy(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/_cluster/health?wait_for_status=yellow&timeout=1s", nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status)
	}
	return nil
}

// Pause stops the process without ending it: connections stay, nothing answers.
func (s *Server) Pause() error { return s.signal(syscall.SIGSTOP) }

// Resume undoes Pause.
func (s *Server) Resume() error { return s.signal(syscall.SIGCONT) }

// Kill ends the process as a power cut would end it, and waits until it is gone.
// Run starts it again.
func (s *Server) Kill() error {
	s.mu.Lock()
	exited := s.exited
	s.mu.Unlock()
	if exited == nil {
		return nil
	}
	err := s.signal(syscall.SIGKILL)
	<-exited
	return err
}

func (s *Server) signal(sig syscall.Signal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.exited:
		return nil
	default:
		return syscall.Kill(-s.cmd.Process.Pid, sig)
	}
}

// Log is the end of the server's output.
func (s *Server) Log() string { return s.out.String() }

// Close ends the process and removes its data.
func (s *Server) Close() error {
	return errors.Join(s.Kill(), os.RemoveAll(s.dir))
}

// freePort is one that nobody listens on, nor will by chance while the server starts: it is
// below those that a system gives to whoever asks for any.
func freePort(ctx context.Context) (port int, err error) {
	for range 100 {
		port = 10000 + rand.IntN(20000) //nolint:gosec // G404: a port is no secret
		l, failed := new(net.ListenConfig).Listen(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err = failed; err == nil {
			return port, l.Close()
		}
	}
	return 0, err
}

// tail retains the last bytes written to it.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

const tailSize = 16 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p...)
	if over := len(t.buf) - tailSize; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.buf))
}
