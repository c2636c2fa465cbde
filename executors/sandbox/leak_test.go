//go:build linux && (amd64 || arm64)

package sandbox

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

const leakRuns = 100

// remains are what a run could leave behind in this process and on disk.
type remains struct {
	Children, Descriptors, Scratch int
	Mounts                         string
}

// count takes them. swept comes before a first count.
func count(t *testing.T, base string) remains {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	instances, err := filepath.Glob(filepath.Join(base, "*", taskDir, "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return remains{len(children(t, os.Getpid())), len(fds), len(instances), string(mounts)}
}

// swept opens and closes a sandbox: what parents that were killed by earlier tests left
// in the base is gone afterwards.
func swept(t *testing.T) {
	t.Helper()
	s, err := Open(t.Context(), config(t, Config{Workers: -1}))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// children are the direct children of a process, the dead but not yet
// collected ones too.
func children(t *testing.T, pid int) []int {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			continue // the thread ended
		}
		for _, word := range strings.Fields(string(raw)) {
			n, err := strconv.Atoi(word)
			if err != nil {
				t.Fatal(err)
			}
			pids = append(pids, n)
		}
	}
	return pids
}

func TestNothingIsLeft(t *testing.T) {
	scripts := []Job{
		{Script: "print(1)"},
		{Script: "raise ValueError"},
		{Script: "open('kept', 'w').write('x')"},
		{Script: "import os; os.abort()"},
		{Script: "while True: print('x' * 1000)", Limits: Limits{Output: 1000}},
	}
	for _, name := range available(t) {
		runs := leakRuns
		if name != Namespaces {
			runs /= 4 // the drivers share all but their first steps
		}
		t.Run(name, func(t *testing.T) {
			swept(t)
			before := count(t, testBase)
			s, err := Open(t.Context(), config(t, Config{Driver: name}))
			if err != nil {
				t.Fatal(err)
			}
			for i := range runs {
				job := scripts[i%len(scripts)]
				job.Input = strings.NewReader("data")
				run(t, s, job)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(before, count(t, testBase)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// helperVar names the driver a helper process is to use; see helper.
const helperVar = "WRIT_SANDBOX_TEST_HELPER"

// helper is a parent that never ends by itself: it opens a sandbox, says so and
// runs a script without end.
func helper() int {
	s, err := Open(context.Background(), Config{Dir: os.Getenv("WRIT_SANDBOX_TEST_BASE"), Driver: os.Getenv(helperVar), Workers: 1})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	_, err = s.Run(context.Background(), Job{
		Script: "while True: pass", Limits: Limits{Wall: 10 * waitLimit, CPU: 10 * waitLimit},
		Input: readFunc(func([]byte) (int, error) {
			fmt.Println("running")
			select {}
		}),
	})
	fmt.Println(err)
	return 1
}

// TestParentDies kills the parent of running and waiting sandboxes, which must not
// survive it.
func TestParentDies(t *testing.T) {
	for _, name := range available(t) {
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
			cmd.Env = append(os.Environ(), helperVar+"="+name, "WRIT_SANDBOX_TEST_BASE="+testBase)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if line, err := bufio.NewReader(out).ReadString('\n'); line != "running\n" {
				t.Fatalf("helper: %q %v", line, err)
			}
			instances := children(t, cmd.Process.Pid)
			if len(instances) == 0 {
				t.Fatal("the helper has no sandbox")
			}
			var fds []unix.PollFd
			for _, pid := range instances {
				fd, err := unix.PidfdOpen(pid, 0)
				if err != nil {
					t.Fatal(err)
				}
				defer unix.Close(fd)
				fds = append(fds, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
			}
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			cmd.Wait()
			for i := range fds {
				// Readable once the process ended.
				n, err := unix.Poll(fds[i:i+1], int(waitLimit.Milliseconds()))
				if n != 1 {
					t.Errorf("sandbox %d outlived its parent: %v", instances[i], err)
				}
			}
		})
	}
}
