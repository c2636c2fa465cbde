//go:build unix

package datadir_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"aob.dev/writ/internal/datadir"
)

// TestLock: one process has a data directory. A lock that somebody holds for a moment is waited for.
func TestLock(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	asks, err := os.Create(filepath.Join(dir, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer asks.Close()
	if err := unix.Flock(int(asks.Fd()), unix.LOCK_SH); err != nil {
		t.Fatal(err)
	}
	let := make(chan error, 1)
	time.AfterFunc(50*time.Millisecond, func() { let <- unix.Flock(int(asks.Fd()), unix.LOCK_UN) })
	held, err := datadir.Lock(dir)
	if err := <-let; err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if !datadir.InUse(dir) {
		t.Error("a locked directory is said to be free")
	}
	if _, err := datadir.Lock(dir); err == nil || !strings.Contains(err.Error(), "in use by another writ process") {
		t.Errorf("locked twice: %v", err)
	}
}
