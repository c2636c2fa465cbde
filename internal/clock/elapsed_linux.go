package clock

import (
	"time"

	"golang.org/x/sys/unix"
)

// Elapsed is time since the machine started, the time that it slept included: a
// laptop that wakes up has not had its clock set.
func Elapsed() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return time.Since(began)
	}
	return time.Duration(t.Nano())
}

var began = time.Now()
