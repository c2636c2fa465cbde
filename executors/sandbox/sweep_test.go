//go:build linux && (amd64 || arm64)

package sandbox

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// TestSweep shows that a session without a living owner goes at the next Open,
// and one with an owner stays.
func TestSweep(t *testing.T) {
	s := open(t, Config{})
	tasks := filepath.Join(s.host.runtime.path, taskDir)
	dead := filepath.Join(tasks, sessionPrefix+"dead")
	if err := os.MkdirAll(filepath.Join(dead, "box-1"), 0o700); err != nil {
		t.Fatal(err)
	}
	build := filepath.Join(testBase, buildPrefix+"dead")
	if err := os.Mkdir(build, 0o700); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-2 * staleAge)
	if err := os.Chtimes(build, old, old); err != nil {
		t.Fatal(err)
	}
	open(t, Config{})
	if _, err := os.Stat(build); !os.IsNotExist(err) {
		t.Errorf("unfinished build is still there: %v", err)
	}
	if _, err := os.Stat(dead); !os.IsNotExist(err) {
		t.Errorf("leftover is still there: %v", err)
	}
	if _, err := os.Stat(filepath.Join(s.host.runtime.path, s.host.scratch.session)); err != nil {
		t.Errorf("living session: %v", err)
	}
}

// TestPrepareAtOnce shows that several builders end with one runtime.
func TestPrepareAtOnce(t *testing.T) {
	base := t.TempDir()
	interpreter, err := testPython()
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range 3 {
		group.Go(func() {
			if _, err := findRuntime(t.Context(), base, interpreter); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	entries, err := os.ReadDir(base)
	if err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

func TestBaseFallsBack(t *testing.T) {
	t.Setenv("TMPDIR", testBase)
	closed := filepath.Join(testBase, "closed")
	if err := os.Mkdir(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(closed, "data")
	got, err := chooseBase(dir)
	if err != nil {
		t.Fatal(err)
	}
	if want := os.Geteuid() != 0; (got == dir) != want {
		t.Errorf("got %s", got)
	}
	if err := os.Chmod(got, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := checkOwned(got); err == nil {
		t.Error("accepted a directory that all may write to")
	}
}
