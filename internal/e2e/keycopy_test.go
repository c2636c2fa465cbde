package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"aob.dev/writ/internal/failpoint"
)

// copyDeath is a way to die of a command that copies keys of erasable parts.
type copyDeath struct {
	point failpoint.Point
	n     int
	into  bool // the data directory to restore into exists
}

var copyDeaths = []copyDeath{
	{point: failpoint.CopyWritten, n: 1},
	{point: failpoint.RestoreKeys, n: 1},
	{point: failpoint.RestoreKeys, n: 2, into: true},
	{point: failpoint.RestoreMoved, n: 1, into: true},
	{point: failpoint.RestoreMoved, n: 3, into: true},
}

// TestKeyCopyKills kills backup and restore while they copy keys. The old copy of the keys stays as it
// was, nothing starts on half a directory, and the command does its work when it is typed again.
func TestKeyCopyKills(t *testing.T) {
	t.Parallel()
	exe := mortal(t)
	begun := beginLog(t, exe)
	x := &machine{system: &system{t: t, dir: begun}, exe: exe, args: []string{"up", "--data", begun, "--listen", "127.0.0.1:0"}}
	x.start() // another file of keys
	x.holdNothing()
	x.end(syscall.SIGTERM)
	for _, d := range copyDeaths {
		t.Run(fmt.Sprintf("%s:%d", d.point, d.n), func(t *testing.T) {
			to := t.TempDir()
			backup, keys, dir := filepath.Join(to, "backup.tar"), filepath.Join(to, "erasable.tar"), filepath.Join(to, "data")
			command := func(env string, args ...string) (string, error) {
				c := exec.CommandContext(t.Context(), exe, append([]string{"admin"}, args...)...)
				c.Env = append(os.Environ(), env)
				out, err := c.CombinedOutput()
				return string(out), err
			}
			must := func(args ...string) {
				t.Helper()
				if out, err := command("", args...); err != nil {
					t.Fatalf("%v: %v: %s", args, err, out)
				}
			}
			dies := func(args ...string) {
				t.Helper()
				out, err := command(fmt.Sprintf("%s=%s:%d", failpoint.Variable, d.point, d.n), args...)
				var ended *exec.ExitError
				if !errors.As(err, &ended) || ended.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
					t.Fatalf("%v was not killed: %v: %s", args, err, out)
				}
			}
			must("backup", backup, "--data", begun, "--keys", "--erasable", keys)
			if d.point == failpoint.CopyWritten {
				before, err := os.ReadFile(keys)
				if err != nil {
					t.Fatal(err)
				}
				dies("backup", filepath.Join(to, "another.tar"), "--data", begun, "--keys", "--erasable", keys)
				if after, err := os.ReadFile(keys); err != nil || !bytes.Equal(before, after) {
					t.Errorf("the old copy was changed: %v", err)
				}
				must("backup", filepath.Join(to, "third.tar"), "--data", begun, "--keys", "--erasable", keys)
				if left, err := filepath.Glob(keys + "?*"); err != nil || len(left) > 0 {
					t.Errorf("%v is left: %v", left, err)
				}
				return
			}
			if d.into {
				if err := os.Mkdir(dir, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			restore := []string{"restore", backup, "--data", dir, "--erasable", keys}
			dies(restore...)
			start := exec.CommandContext(t.Context(), exe, "up", "--data", dir, "--listen", "127.0.0.1:0")
			if out, err := start.CombinedOutput(); err == nil || !strings.Contains(string(out), ".restoring") {
				t.Errorf("a start on half a directory: %v: %s", err, out)
			}
			if out, err := command("", restore...); err == nil {
				t.Errorf("a restore over another one: %s", out)
			}
			for _, stage := range []string{dir, dir + ".restoring"} {
				if err := os.RemoveAll(stage); err != nil {
					t.Fatal(err)
				}
			}
			must(restore...)
			check := exec.CommandContext(t.Context(), exe, "audit", "fsck", "--data", dir)
			if out, err := check.CombinedOutput(); err != nil {
				t.Errorf("fsck: %v: %s", err, out)
			}
		})
	}
}
