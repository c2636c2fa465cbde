package escape

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestNumbers: the columns are those of the architectures.
func TestNumbers(t *testing.T) {
	for name, nr := range map[string]int{"bpf": unix.SYS_BPF, "mount": unix.SYS_MOUNT, "ptrace": unix.SYS_PTRACE, "io_uring_setup": unix.SYS_IO_URING_SETUP} {
		found := false
		for line := range strings.Lines(numbers) {
			call := strings.Fields(line)
			found = found || call[0] == name && call[column] == fmt.Sprint(nr)
		}
		if !found {
			t.Errorf("%s is not %d on %s", name, nr, runtime.GOARCH)
		}
	}
}
