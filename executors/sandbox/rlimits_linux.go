package sandbox

import (
	"fmt"

	"golang.org/x/sys/unix"
)

type rlimit struct {
	resource uintptr
	limit    unix.Rlimit
}

func bound(resource int, n uint64) rlimit {
	return rlimit{uintptr(resource), unix.Rlimit{Cur: n, Max: n}}
}

// limitResources sets the limits under which init itself can still work.
func limitResources(s *boxSpec) error {
	for _, l := range []rlimit{
		bound(unix.RLIMIT_FSIZE, uint64(s.Room)),
		bound(unix.RLIMIT_NOFILE, uint64(s.Limits.Files)),
		// 1, not 0: a core_pattern that is a pipe ignores 0 but obeys 1.
		bound(unix.RLIMIT_CORE, 1),
		bound(unix.RLIMIT_STACK, 8<<20),
		bound(unix.RLIMIT_MEMLOCK, 0),
		bound(unix.RLIMIT_MSGQUEUE, 0),
		bound(unix.RLIMIT_SIGPENDING, 64),
	} {
		if err := unix.Prlimit(0, int(l.resource), lowered(l), nil); err != nil {
			return fmt.Errorf("resource %d: %w", l.resource, err)
		}
	}
	return nil
}

// lowered is l, but never above the hard limit already in force, which an
// unprivileged process cannot raise.
func lowered(l rlimit) *unix.Rlimit {
	var now unix.Rlimit
	if err := unix.Prlimit(0, int(l.resource), nil, &now); err != nil || l.limit.Max < now.Max {
		return &l.limit
	}
	return &unix.Rlimit{Cur: now.Max, Max: now.Max}
}

// lateLimits are those that would end the Go runtime: it has several threads
// and reserves far more address space than Memory. Soft and hard CPU limit are
// equal because the first process of a pid namespace ignores SIGXCPU, which
// the soft limit sends, but not SIGKILL, which the hard one sends.
func (s *boxSpec) lateLimits() []rlimit {
	late := []rlimit{
		bound(unix.RLIMIT_CPU, s.Limits.cpuSeconds()),
		bound(unix.RLIMIT_AS, uint64(s.Limits.Memory)),
	}
	if s.OwnUser {
		late = append(late, bound(unix.RLIMIT_NPROC, uint64(s.Limits.Threads)))
	}
	for i := range late {
		late[i].limit = *lowered(late[i])
	}
	return late
}
