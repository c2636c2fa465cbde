//go:build linux && (amd64 || arm64)

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// waiting is a sandbox of a driver that waits for a script, for as long as the
// test.
func waiting(t *testing.T, driver string) (*Sandbox, *Instance) {
	t.Helper()
	s := open(t, Config{Driver: driver, Workers: -1})
	inst, err := s.driver.Start(Profile{Limits: s.cfg.Limits, Room: s.cfg.Limits.Scratch})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := inst.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := inst.awaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s, inst
}

// about reads a file about a process.
func about(t *testing.T, pid int, name string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), name))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// TestSandboxesYield: processor time goes to others first, and where memory is
// short sandboxes go first. They have no huge pages.
func TestSandboxesYield(t *testing.T) {
	for _, name := range available(t) {
		t.Run(name, func(t *testing.T) {
			_, inst := waiting(t, name)
			if got := strings.TrimSpace(about(t, inst.proc.Pid, "oom_score_adj")); got != "1000" {
				t.Errorf("oom_score_adj %s", got)
			}
			stat := about(t, inst.proc.Pid, "stat")
			const nice = 16 // of the fields after the name
			if got, err := strconv.Atoi(strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])[nice]); err != nil || got < sandboxNice {
				t.Errorf("nice %d, %v", got, err)
			}
			if status := about(t, inst.proc.Pid, "status"); strings.Contains(status, "THP_enabled:\t1") {
				t.Error("huge pages")
			}
		})
	}
}

// TestKernelMemoryIsCounted: where a control group can be had, what the kernel
// keeps for a sandbox, such as names of files that it looked for, counts as its
// own.
func TestKernelMemoryIsCounted(t *testing.T) {
	const script = "import os, time\nfor i in range(400_000):\n    try: os.stat('/usr/%d' % i)\n    except OSError: pass\ntime.sleep(60)"
	s := open(t, Config{Workers: -1})
	g := s.host.groups
	if g == nil {
		t.Log("no control group can be had here")
		return
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := s.Run(ctx, Job{Script: script})
		done <- err
	}()
	const names = 64 << 20 // at least, of 400,000
	usage := func() (n int64) {
		instances, err := filepath.Glob(filepath.Join(g.dir, fmt.Sprintf("%s%d-*", groupPrefix, os.Getpid()), "memory.current"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range instances {
			raw, _ := os.ReadFile(file) // gone, if it ended
			one, _ := strconv.ParseInt(strings.TrimSpace(string(raw)), 10, 64)
			n = max(n, one)
		}
		return n
	}
	for len(done) == 0 && usage() < names {
		time.Sleep(watchPace)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("it ended before it was counted: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(g.dir, fmt.Sprintf("%s%d-*", groupPrefix, os.Getpid()))); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

// TestWallHoldsWhereTheKernelIsSlow: a sandbox that was killed and has not ended,
// as one that waits for memory, does not hold up its result.
func TestWallHoldsWhereTheKernelIsSlow(t *testing.T) {
	b, theirs, err := newInstance()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/bin/sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	b.proc, b.cleanup, b.ready = cmd.Process, func() error { return nil }, true
	b.limits = Limits{Wall: time.Millisecond, Output: 100}
	if _, err := theirs.report.Write([]byte("Gx")); err != nil {
		t.Fatal(err)
	}
	// Nobody collects its status, so it does not end for the parent.
	res, err := b.Run(t.Context(), Job{Script: "pass"})
	if err != nil || res.Outcome != Timeout || res.Limit != WallLimit || !b.alive() {
		t.Errorf("%+v, %v", res, err)
	}
	go b.wait()
	theirs.close()
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}

// TestOwnGroup reads the line of version 2.
func TestOwnGroup(t *testing.T) {
	const table = "9:name=systemd:/\n4:memory:/a/b:c\n0::/user.slice/x\n"
	if got := ownGroup(table); got != "/user.slice/x" {
		t.Errorf("%q", got)
	}
	if got := delegated("/no/such/group"); got != "" {
		t.Errorf("delegated %q", got)
	}
}
