package main

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// A directory of the caller's is left alone, and a disk is no memory.
func TestScratch(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	if dir := scratch("/dev/shm"); dir != "" {
		t.Errorf("%s was made though TMPDIR is set", dir)
	}
	t.Setenv("TMPDIR", "")
	if dir := scratch(filepath.Join(t.TempDir(), "none")); dir != "" {
		t.Errorf("%s was made in nothing", dir)
	}
	if dir := scratch("/proc"); dir != "" {
		t.Errorf("%s was made in no memory", dir)
	}
	dir := scratch("/dev/shm")
	if dir == "" { // the machine has no such place
		return
	}
	defer func() { _ = os.Remove(dir) }()
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil || fs.Type != unix.TMPFS_MAGIC {
		t.Errorf("%s: type %x, %v", dir, fs.Type, err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode()&(os.ModeSticky|0o777) != os.ModeSticky|0o777 {
		t.Errorf("%s: %v, %v", dir, info, err)
	}
}
