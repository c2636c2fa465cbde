//go:build amd64 || arm64

package sandbox

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// cgroupMount is where control groups are mounted.
const cgroupMount = "/sys/fs/cgroup"

// groupPrefix begins the names of the groups of sandboxes. The pid of this process and a
// random text follow, since a process may have several sandboxes.
const groupPrefix = "writ-box-"

// groupOverhead is the allowance of a group beyond memory and scratch, in bytes: for the
// pages of the runtime that its sandbox is the first to read, page tables, names of
// files that it looked up, and data in pipes.
const groupOverhead = 64 << 20

// groups makes a control group for each sandbox, where the machine permits it; else it is nil. A
// group bounds memory that no process limit counts: the kernel's for the process.
type groups struct {
	dir string // parent of the sandboxes' groups
}

// openGroups finds where groups can be made: in a directory of version 2 that was
// delegated. It removes leftovers of a crash.
func openGroups() *groups {
	raw, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil
	}
	g := &groups{dir: delegated(ownGroup(string(raw)))}
	if g.dir == "" {
		return nil
	}
	g.sweep()
	trial, err := g.make(minMemory)
	if err != nil {
		return nil
	}
	trial.remove()
	return g
}

// ownGroup is the path of this process's group of version 2.
func ownGroup(table string) string {
	for line := range strings.Lines(table) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			return path
		}
	}
	return ""
}

// delegated is the directory of version 2 in which groups with a memory limit can be
// made: one that was delegated to this process, which is in a group of its own below,
// as with systemd's DelegateSubgroup. The kernel permits no such groups in a directory
// that has processes of its own, and only their owner should move those.
func delegated(own string) string {
	const marks = 2
	if own == "" || own == "/" {
		return ""
	}
	dir := filepath.Dir(filepath.Join(cgroupMount, own))
	handed := false
	for _, mark := range [marks]string{"trusted.delegate", "user.delegate"} {
		var b [1]byte
		if n, err := unix.Getxattr(dir, mark, b[:]); err == nil && n == 1 && b[0] == '1' {
			handed = true
		}
	}
	const control = "cgroup.subtree_control"
	if !handed || os.WriteFile(filepath.Join(dir, control), []byte("+memory"), 0) != nil {
		return ""
	}
	_ = os.WriteFile(filepath.Join(dir, control), []byte("+cpu"), 0) // optional
	return dir
}

// sweep removes the groups of processes that are gone. One in use stays: the
// kernel removes none with a process in it.
func (g *groups) sweep() {
	left, _ := filepath.Glob(filepath.Join(g.dir, groupPrefix+"*"))
	for _, dir := range left {
		pid, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), groupPrefix), "-")
		if n, err := strconv.Atoi(pid); err == nil && n != os.Getpid() && errors.Is(unix.Kill(n, 0), unix.ESRCH) {
			_ = unix.Rmdir(dir)
		}
	}
}

// group is that of one sandbox.
type group struct{ dir string }

// make makes a group that may take memory bytes.
func (g *groups) make(memory int64) (*group, error) {
	b := &group{filepath.Join(g.dir, fmt.Sprintf("%s%d-%s", groupPrefix, os.Getpid(), rand.Text()))}
	if err := os.Mkdir(b.dir, 0o755); err != nil { //nolint:gosec // G301: the kernel's
		return nil, err
	}
	if err := b.write("memory.max", strconv.FormatInt(memory, 10)); err != nil {
		b.remove()
		return nil, err
	}
	_ = b.write("memory.swap.max", "0") // not there where swap is not counted
	_ = b.write("cpu.weight", "10")     // optional; the default is 100
	return b, nil
}

func (b *group) write(name, text string) error {
	return os.WriteFile(filepath.Join(b.dir, name), []byte(text), 0)
}

// add moves a process into the group.
func (b *group) add(pid int) error { return b.write("cgroup.procs", strconv.Itoa(pid)) }

// keptSize is the size, in bytes, from which a sandbox's remaining kernel memory is reclaimed at
// once; a smaller rest is left to the next memory shortage.
const keptSize = 32 << 20

// remove removes the group of a process that ended.
func (b *group) remove() {
	raw, err := os.ReadFile(filepath.Join(b.dir, "memory.current"))
	if n, bad := strconv.ParseInt(strings.TrimSpace(string(raw)), 10, 64); err == nil && bad == nil && n > keptSize {
		_ = b.write("memory.reclaim", "1G")
	}
	// The process leaves the group a moment after its exit was reported.
	const tries, pause = 20, time.Millisecond
	for range tries {
		if err := unix.Rmdir(b.dir); err == nil || errors.Is(err, fs.ErrNotExist) {
			return
		}
		time.Sleep(pause)
	}
}
