//go:build integration && linux

package e2e

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// inside tells this test binary that it has its own mounts.
const inside = "WRIT_TEST_OWN_MOUNTS"

// alone runs a test again in a process whose mounts and children nobody else has: when it ends,
// however it ends, the kernel takes them all away. It reports whether this is that process.
func alone(t *testing.T) bool {
	t.Helper()
	if os.Getenv(inside) != "" {
		return true
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"-test.run=^" + t.Name() + "$", "-test.v"}
	if end, ok := t.Deadline(); ok {
		args = append(args, "-test.timeout="+time.Until(end).String())
	} else {
		args = append(args, "-test.timeout=0")
	}
	cmd := exec.CommandContext(t.Context(), exe, args...)
	cmd.Env = append(os.Environ(), inside+"=1", "TMPDIR="+t.TempDir())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID, Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread() // the signal comes with the end of the thread
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		t.Fatalf("mounts of its own: %v: run the test as root, with CAP_SYS_ADMIN", err)
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		t.Logf("| %s", lines.Text())
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: it says above why", err)
	}
	return false
}

// disk is an ext4 of its own, whose power can be cut. Its image is in memory, in
// the private mounts of the test.
type disk struct {
	t     *testing.T
	image string
	dir   string // where it is mounted
	root  *os.File
	loop  string
}

// newDisk makes a disk, empty and mounted.
func newDisk(t *testing.T) *disk {
	t.Helper()
	top := t.TempDir()
	d := &disk{t: t, image: filepath.Join(top, "ram", "image"), dir: filepath.Join(top, "disk")}
	for _, dir := range []string{filepath.Dir(d.image), d.dir} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	d.mustMount("tmpfs", filepath.Dir(d.image), "tmpfs", "size=1g")
	t.Cleanup(func() { _ = unix.Unmount(filepath.Dir(d.image), unix.MNT_DETACH) }) // else the namespace's end does it
	d.mustMount("proc", "/proc", "proc", "")                                       // of this process's children
	f, err := os.Create(d.image)
	if err != nil {
		t.Fatal(err)
	}
	const size = 4 << 30 // sparse; above the floor of free disk
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	d.command("mkfs.ext4", "e2fsprogs", "-q", "-F", "-E", "lazy_itable_init=1,lazy_journal_init=1", d.image)
	d.mount()
	t.Cleanup(func() {
		if d.root != nil {
			_ = d.root.Close()
			_ = unix.Unmount(d.dir, unix.MNT_DETACH) // else the namespace's end does it
		}
	})
	return d
}

func (d *disk) mustMount(source, target, kind, data string) {
	d.t.Helper()
	if err := unix.Mount(source, target, kind, 0, data); err != nil {
		d.t.Fatalf("mount a %s: %v: run the test as root, with CAP_SYS_ADMIN", kind, err)
	}
}

func (d *disk) command(name, from string, args ...string) {
	d.t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		d.t.Fatalf("%v: install %s", err, from)
	}
	if out, err := exec.CommandContext(d.t.Context(), path, args...).CombinedOutput(); err != nil {
		d.t.Fatalf("%s: %v: %s", name, err, out)
	}
}

// mount takes up what was synced. Nothing becomes durable by itself: not in time
// (commit), nor by a rename (auto_da_alloc).
func (d *disk) mount() {
	d.t.Helper()
	d.command("mount", "util-linux, and let loop devices be made", "-t", "ext4", "-o", "loop,commit=300,noauto_da_alloc,noinit_itable", d.image, d.dir)
	root, err := os.Open(d.dir)
	if err != nil {
		d.t.Fatal(err)
	}
	var at unix.Stat_t
	if err := unix.Fstat(int(root.Fd()), &at); err != nil {
		d.t.Fatal(err)
	}
	d.root, d.loop = root, filepath.Join("/sys/block", "loop"+strconv.Itoa(int(unix.Minor(at.Dev))), "loop", "backing_file")
}

// Of <linux/ext4.h>: the file system stops at once, and its log with it.
const (
	ext4Shutdown   = 0x8004587d
	withoutLogSync = 2
)

// cut the power: from now on nothing is written, and what was not synced is lost.
func (d *disk) cut() {
	d.t.Helper()
	if err := unix.IoctlSetPointerInt(int(d.root.Fd()), ext4Shutdown, withoutLogSync); err != nil {
		d.t.Fatalf("stop the ext4: %v", err)
	}
}

// restore gives the disk its power again. Nobody may use it any more: writ's own
// children end soon after it, and the kernel has to let go of the disk, too, else it
// would give what it still has in memory.
func (d *disk) restore() {
	d.t.Helper()
	if err := d.root.Close(); err != nil {
		d.t.Fatal(err)
	}
	d.root = nil
	d.until("the disk is unmounted", func() bool {
		err := unix.Unmount(d.dir, 0)
		if err != nil && !errors.Is(err, unix.EBUSY) {
			d.t.Fatalf("unmount: %v", err)
		}
		return err == nil
	})
	d.until("nobody uses the disk", func() bool {
		_, err := os.Stat(d.loop)
		return err != nil
	})
	d.mount()
}

// until something is so.
func (d *disk) until(what string, is func() bool) {
	d.t.Helper()
	late := time.After(patience)
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for !is() {
		select {
		case <-look.C:
		case <-late:
			d.t.Fatalf("never: %s", what)
		}
	}
}
