package measure

import (
	"os"

	"golang.org/x/sys/unix"
)

// syncData makes what was written to a file durable, and of its metadata only
// what reading it needs.
func syncData(f *os.File) error { return unix.Fdatasync(int(f.Fd())) }
