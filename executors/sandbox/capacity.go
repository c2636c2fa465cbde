package sandbox

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// capacity is the number of concurrent runs of unit bytes each, and the most that one run may take.
// Processors and memory are those that the control group of this process may use; a quarter of the
// memory is for writ itself. Memory is 0 if unknown.
func capacity(processors int, memory, unit int64) (places int, most int64) {
	places = processors + 2 // more than processors, which would idle while sandboxes are built and end
	if memory == 0 {
		return places, unit + maxInput
	}
	free := memory - memory/4
	places = int(max(1, min(int64(places), free/unit)))
	return places, max(unit, free/int64(places))
}

// processors that the scheduler uses: those of the machine, or what its control group leaves.
func processors() int { return runtime.GOMAXPROCS(0) }

// memoryLimit is the memory that this process may use, in bytes: the least of the limits of its
// control group and those above it, and what the machine has. 0: it is not known.
func memoryLimit(root string) int64 {
	table, _ := os.ReadFile(filepath.Join(root, "proc/self/cgroup")) //nolint:gosec // G304: of the kernel; not there: no groups
	least := memTotal(root)
	for line := range strings.Lines(string(table)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		switch {
		case parts[1] == "memory":
			least = least.and(root, "memory", parts[2], "memory.limit_in_bytes")
		case parts[0] == "0":
			least = least.and(root, "", parts[2], "memory.max")
		}
	}
	return int64(least)
}

// bound in bytes; 0: none is known.
type bound int64

// and takes the limit of a group and of all above it.
func (b bound) and(root, controller, group, file string) bound {
	for at := filepath.Join("/", group); ; at = filepath.Dir(at) {
		raw, err := os.ReadFile(filepath.Join(root, "sys/fs/cgroup", controller, at, file)) //nolint:gosec // G304: of the kernel
		n, bad := strconv.ParseInt(strings.TrimSpace(string(raw)), 10, 64)
		if err == nil && bad == nil && n > 0 && (b == 0 || bound(n) < b) {
			b = bound(n)
		}
		if at == "/" {
			return b
		}
	}
}

func memTotal(root string) bound {
	raw, _ := os.ReadFile(filepath.Join(root, "proc/meminfo")) //nolint:gosec // G304: of the kernel; not there: it is not known
	for line := range strings.Lines(string(raw)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "MemTotal:" {
			n, _ := strconv.ParseInt(f[1], 10, 64)
			return bound(n << 10)
		}
	}
	return 0
}
