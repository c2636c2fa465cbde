//go:build amd64 || arm64

package sandbox

import (
	"sync"

	"golang.org/x/sys/unix"
)

// dropBounding empties the set that bounds the capabilities gained by execve. A process without
// the right to do that has no capabilities to bound either.
func (s *sandboxSpec) dropBounding(p *program) {
	if !s.OwnRoot && !holdsCapability(unix.CAP_SETPCAP) {
		return
	}
	for c := range capabilities() {
		p.call(unix.SYS_PRCTL, num(unix.PR_CAPBSET_DROP), num(c), num(0), num(0), num(0))
	}
}

// capabilities is how many this kernel has.
var capabilities = sync.OnceValue(func() uintptr {
	for c := uintptr(0); ; c++ {
		// EINVAL: past the last one.
		if err := unix.Prctl(unix.PR_CAPBSET_READ, c, 0, 0, 0); err != nil {
			return c
		}
	}
})

// dropCapabilities empties the other four sets.
func dropCapabilities(p *program) {
	p.call(unix.SYS_PRCTL, num(unix.PR_CAP_AMBIENT), num(unix.PR_CAP_AMBIENT_CLEAR_ALL), num(0), num(0), num(0))
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	p.call(unix.SYS_CAPSET, value(p, &header), value(p, &none))
}

// becomeUser takes the sandbox's own uid and gid and gives up all groups. Leaving
// uid 0 for good empties the permitted capabilities.
func (s *sandboxSpec) becomeUser(p *program) {
	if s.ID < 0 {
		return
	}
	id := num(s.ID)
	p.call(unix.SYS_SETGROUPS, num(0), num(0))
	p.call(unix.SYS_SETRESGID, id, id, id)
	p.call(unix.SYS_SETRESUID, id, id, id)
}

// holdsCapability reports whether this process has c in effect.
func holdsCapability(c uint) bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if err := unix.Capget(&header, &sets[0]); err != nil {
		return false
	}
	return sets[c/32].Effective&(1<<(c%32)) != 0
}
