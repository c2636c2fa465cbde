package sandbox

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// becomeUser takes the box's own uid and gid and gives up all groups.
//
// The calls are raw on purpose: package syscall would apply them to every
// thread of the Go runtime, and only this one survives execve.
func becomeUser(s *boxSpec) error {
	if s.ID < 0 {
		return nil
	}
	id := uintptr(s.ID)
	if _, _, e := unix.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0); e != 0 {
		return fmt.Errorf("setgroups: %w", e)
	}
	if _, _, e := unix.RawSyscall(unix.SYS_SETRESGID, id, id, id); e != 0 {
		return fmt.Errorf("setresgid %d: %w", s.ID, e)
	}
	// Keeps the permitted set for dropCapabilities, which empties the bounding
	// set with it.
	if err := unix.Prctl(unix.PR_SET_KEEPCAPS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("keepcaps: %w", err)
	}
	if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, id, id, id); e != 0 {
		return fmt.Errorf("setresuid %d: %w", s.ID, e)
	}
	return nil
}

// dropCapabilities empties all five sets of the calling thread and reads them
// back: a box that keeps any is worse than none.
func dropCapabilities(*boxSpec) error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if err := unix.Capget(&header, &sets[0]); err != nil {
		return fmt.Errorf("capget: %w", err)
	}
	if sets[0].Permitted&(1<<unix.CAP_SETPCAP) != 0 {
		for i := range sets {
			sets[i].Effective = sets[i].Permitted
		}
		if err := unix.Capset(&header, &sets[0]); err != nil {
			return fmt.Errorf("raise: %w", err)
		}
		for c := range uintptr(64) {
			// EINVAL: past the last capability of this kernel.
			if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil && err != unix.EINVAL {
				return fmt.Errorf("drop bounding %d: %w", c, err)
			}
		}
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("clear ambient: %w", err)
	}
	sets = [2]unix.CapUserData{}
	if err := unix.Capset(&header, &sets[0]); err != nil {
		return fmt.Errorf("capset: %w", err)
	}
	if err := unix.Capget(&header, &sets[0]); err != nil {
		return fmt.Errorf("capget: %w", err)
	}
	if sets != [2]unix.CapUserData{} {
		return fmt.Errorf("capabilities left: %+v", sets)
	}
	return nil
}
