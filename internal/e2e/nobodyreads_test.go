package e2e

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"aob.dev/writ/internal/datadir"
)

// TestLogThatNobodyReads: writ whose log goes to a pipe that is full answers as ever, and lives
// on when whoever should have read it is gone.
func TestLogThatNobodyReads(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	_ = w.SetWriteDeadline(time.Now().Add(10 * time.Millisecond))
	for err == nil {
		_, err = w.Write(make([]byte, 4096))
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Args = []string{"writ", "up", "--data", dir, "--listen", "127.0.0.1:0"}
	cmd.Env, cmd.Stderr = append(append(os.Environ(), "WRIT_MODEL_KEY=sk-test"), documentsEnv(dir)...), w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	answers := func() {
		t.Helper()
		for until := time.Now().Add(patience); ; <-time.After(20 * time.Millisecond) {
			url, _ := os.ReadFile(datadir.AddressFile(dir))
			key, _ := datadir.LocalKey(dir)
			if req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, strings.TrimSpace(string(url))+"/agent/plans", nil); err == nil && len(url) > 0 {
				req.Header.Set("X-API-Key", key)
				if res, err := http.DefaultClient.Do(req); err == nil {
					_ = res.Body.Close()
					if res.StatusCode == http.StatusOK {
						return
					}
				}
			}
			select {
			case err := <-ended:
				t.Fatalf("writ has ended: %v", err)
			default:
			}
			if time.Now().After(until) {
				t.Fatal("writ does not answer")
			}
		}
	}
	answers()
	_ = r.Close()
	_ = cmd.Process.Signal(syscall.SIGHUP) // which is logged
	answers()
	_ = cmd.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("writ ended with %v", err)
		}
	case <-time.After(patience):
		_ = cmd.Process.Kill()
		t.Fatal("writ does not end")
	}
}
