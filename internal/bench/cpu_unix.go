//go:build unix

package bench

import (
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime is what this process has used of the processors, in user and system mode.
func cpuTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0 // never for RUSAGE_SELF
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
