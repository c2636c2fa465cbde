//go:build amd64 || arm64

package sandbox

import (
	"golang.org/x/sys/unix"
)

// limitResources bounds the process, which is always one: fork is refused. Soft
// and hard CPU limit are equal because the first process of a pid namespace
// ignores SIGXCPU, which the soft limit sends, but not SIGKILL, which the hard
// one sends.
func (s *sandboxSpec) limitResources(p *program) {
	limits := []struct {
		resource int
		most     uint64
	}{
		{unix.RLIMIT_FSIZE, uint64(s.Room)},          //nolint:gosec // G115: within range
		{unix.RLIMIT_NOFILE, uint64(s.Limits.Files)}, //nolint:gosec // G115: within range
		// 1, not 0: a core_pattern that is a pipe ignores 0 but obeys 1.
		{unix.RLIMIT_CORE, 1},
		{unix.RLIMIT_STACK, 8 << 20},
		{unix.RLIMIT_MEMLOCK, 0},
		{unix.RLIMIT_MSGQUEUE, 0},
		{unix.RLIMIT_SIGPENDING, 64},
		{unix.RLIMIT_CPU, s.Limits.cpuSeconds()},
		{unix.RLIMIT_AS, uint64(s.Limits.Memory)},     //nolint:gosec // G115: within range
		{unix.RLIMIT_NPROC, uint64(s.Limits.Threads)}, //nolint:gosec // G115: within range
	}
	for _, l := range limits {
		if l.resource == unix.RLIMIT_NPROC && !s.OwnUser {
			continue // would count this user's other processes
		}
		// The sandbox cannot raise a hard limit that is lower already.
		var now unix.Rlimit
		if err := unix.Prlimit(0, l.resource, nil, &now); err == nil {
			l.most = min(l.most, now.Max)
		}
		p.limit(l.resource, l.most)
	}
}
