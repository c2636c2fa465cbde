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

// groupOverhead is what a group may use beyond memory and scratch, in bytes: for the
// pages of the runtime that its sandbox is the first to read, page tables, names of
// files that it looked up, and data in pipes.
const groupOverhead = 64 << 20

// groups makes a control group for each sandbox, where the machine permits it; else it
// is nil. A group bounds what no limit of a process counts: memory that the kernel uses
// for it.
type groups struct {
	dir   string // in which those of the sandboxes are made
	files groupFiles
}

// groupFiles are names of files of a group, which differ between the versions.
type groupFiles struct {
	limit, swap, usage string
	drop, all          string // file that makes the kernel reclaim memory, and what to write to it
	weight             string // of processor time; empty: none
}

var (
	filesV1 = groupFiles{limit: "memory.limit_in_bytes", swap: "memory.memsw.limit_in_bytes", usage: "memory.usage_in_bytes", drop: "memory.force_empty", all: "0"}
	filesV2 = groupFiles{limit: "memory.max", swap: "memory.swap.max", usage: "memory.current", drop: "memory.reclaim", all: "1G", weight: "cpu.weight"}
)

// openGroups finds where groups can be made: of version 2 where a directory is
// delegated, of version 1 where root may write. It removes what a crash left.
func openGroups() *groups {
	raw, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil
	}
	g := &groups{}
	if dir := delegated(ownGroup(string(raw), "")); dir != "" {
		g.dir, g.files = dir, filesV2
	} else if path := ownGroup(string(raw), "memory"); path != "" && os.Geteuid() == 0 {
		g.dir, g.files = filepath.Join(cgroupMount, "memory", path), filesV1
	} else {
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

// ownGroup is the path of this process's group: of a controller of version 1, or
// with none of version 2.
func ownGroup(table, controller string) string {
	for line := range strings.Lines(table) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) == 3 && parts[1] == controller && (controller != "" || parts[0] == "0") {
			return parts[2]
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
type group struct {
	dir   string
	files groupFiles
}

// make makes a group that may take memory bytes.
func (g *groups) make(memory int64) (*group, error) {
	b := &group{filepath.Join(g.dir, fmt.Sprintf("%s%d-%s", groupPrefix, os.Getpid(), rand.Text())), g.files}
	if err := os.Mkdir(b.dir, 0o755); err != nil { //nolint:gosec // G301: the kernel's
		return nil, err
	}
	if err := b.write(b.files.limit, strconv.FormatInt(memory, 10)); err != nil {
		b.remove()
		return nil, err
	}
	swap := "0" // version 2 counts it apart
	if b.files == filesV1 {
		swap = strconv.FormatInt(memory, 10)
	}
	_ = b.write(b.files.swap, swap) // not there where swap is not counted
	if b.files.weight != "" {
		_ = b.write(b.files.weight, "10") // optional; the default is 100
	}
	return b, nil
}

func (b *group) write(name, text string) error {
	return os.WriteFile(filepath.Join(b.dir, name), []byte(text), 0)
}

// add moves a process into the group.
func (b *group) add(pid int) error { return b.write("cgroup.procs", strconv.Itoa(pid)) }

// keptSize is the size from which what a sandbox leaves in the kernel is reclaimed at
// once, in bytes; a smaller rest is left to the next shortage of memory.
const keptSize = 32 << 20

// remove removes the group of a process that ended.
func (b *group) remove() {
	raw, err := os.ReadFile(filepath.Join(b.dir, b.files.usage))
	if n, bad := strconv.ParseInt(strings.TrimSpace(string(raw)), 10, 64); err == nil && bad == nil && n > keptSize {
		_ = b.write(b.files.drop, b.files.all)
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
