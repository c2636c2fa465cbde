//go:build linux && (amd64 || arm64)

package sandbox

import (
	"os"
	"path/filepath"
	"testing"
)

// TestCapacity: as many runs at once as the memory of the control group holds beside writ, however
// many processors there are, and none larger than its part.
func TestCapacity(t *testing.T) {
	const unit = DefaultMemory + DefaultScratch
	for _, tt := range []struct {
		processors int
		memory     int64
		places     int
		most       int64
	}{
		{2, 0, 4, unit + maxInput},
		{2, 24 << 30, 4, 18 << 30 / 4},
		{64, 24 << 30, 32, 18 << 30 / 32},
		{4, 2 << 30, 2, 1536 << 20 / 2}, // a pod of the chart
		{16, 1 << 30, 1, 768 << 20},
		{16, 512 << 20, 1, unit},
	} {
		places, most := capacity(tt.processors, tt.memory, unit)
		if places != tt.places || most != tt.most {
			t.Errorf("%d processors, %d MiB: %d places of %d MiB", tt.processors, tt.memory>>20, places, most>>20)
		}
		if tt.memory >= 1<<30 && int64(places)*most > tt.memory-tt.memory/4 {
			t.Errorf("%d runs of %d MiB leave too little of %d MiB", places, most>>20, tt.memory>>20)
		}
	}
	s := &Sandbox{cfg: Config{Limits: Limits{Memory: DefaultMemory, Scratch: DefaultScratch}}, most: 768 << 20}
	for size, fits := range map[int64]bool{0: true, 192 << 20: true, 192<<20 + 1: false} {
		if _, err := s.profile(Job{InputSize: size}); (err == nil) != fits {
			t.Errorf("an input of %d bytes: %v", size, err)
		}
	}
}

// TestMemoryLimit: of both versions of control groups, with limits at any level.
func TestMemoryLimit(t *testing.T) {
	const total = "MemTotal:       8388608 kB\nMemFree: 1 kB\n"
	for name, tt := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"nothing known":  {nil, 0},
		"no group":       {map[string]string{"proc/meminfo": total}, 8 << 30},
		"a container":    {map[string]string{"proc/meminfo": total, "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "2147483648\n"}, 2 << 30},
		"no limit":       {map[string]string{"proc/meminfo": total, "proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.max": "max\n"}, 8 << 30},
		"a slice above":  {map[string]string{"proc/meminfo": total, "proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "max\n", "sys/fs/cgroup/a/memory.max": "1073741824\n"}, 1 << 30},
		"version 1":      {map[string]string{"proc/meminfo": total, "proc/self/cgroup": "4:memory:/x/y\n0::/\n", "sys/fs/cgroup/memory/x/y/memory.limit_in_bytes": "536870912\n"}, 512 << 20},
		"version 1 bare": {map[string]string{"proc/meminfo": total, "proc/self/cgroup": "4:memory:/host/pod\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "536870912\n"}, 512 << 20},
		"1 without":      {map[string]string{"proc/meminfo": total, "proc/self/cgroup": "4:memory:/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, 8 << 30},
	} {
		root := t.TempDir()
		for file, text := range tt.files {
			at := filepath.Join(root, file)
			if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := memoryLimit(root); got != tt.want {
			t.Errorf("%s: %d", name, got)
		}
	}
}
