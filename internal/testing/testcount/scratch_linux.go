package main

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// The scratch directory wants this much free memory, and a machine that has twice as much: the
// toolchain builds there, and tests keep data directories and unpacked Pythons there.
const scratchFree = 8 << 30

// scratch makes the directory that tests use as TMPDIR, in memory if the machine has a place for
// that (shm is /dev/shm): one where programs may be started and much is free. On a disk, tests of nodes
// spend a quarter of their time on syncs. They show the same in memory, since they kill processes, not
// machines; tests of power cuts bring a file system of their own. scratch returns "" if there is
// no such place, or if the caller has set TMPDIR or GOTMPDIR, which go test prefers.
func scratch(shm string) string {
	var fs unix.Statfs_t
	if os.Getenv("TMPDIR") != "" || os.Getenv("GOTMPDIR") != "" || unix.Statfs(shm, &fs) != nil || fs.Type != unix.TMPFS_MAGIC ||
		fs.Flags&(unix.ST_NOEXEC|unix.ST_RDONLY) != 0 || fs.Bavail*uint64(fs.Bsize) < scratchFree { //nolint:gosec // block sizes are positive
		return ""
	}
	var machine unix.Sysinfo_t
	if unix.Sysinfo(&machine) != nil || machine.Totalram*uint64(machine.Unit) < 2*scratchFree {
		return ""
	}
	dir, err := os.MkdirTemp(shm, "writ-test-")
	if err != nil {
		return ""
	}
	if os.Chmod(dir, os.ModeSticky|0o777) != nil { // as /tmp: sandboxes run as other users
		_ = os.Remove(dir)
		return ""
	}
	return filepath.Clean(dir)
}
