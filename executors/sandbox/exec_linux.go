package sandbox

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// become applies the limits under which Go itself cannot live, installs the
// filter and executes Python.
//
// From the first of these calls on nothing may allocate, so all memory is
// prepared before and only raw system calls follow.
func become(s *boxSpec) error {
	argv := s.Image.command(s.inBox(""), s.Preload)
	path, err := unix.BytePtrFromString(argv[0])
	if err != nil {
		return fmt.Errorf("exec: %w", err)
	}
	args, err := pointers(argv)
	if err != nil {
		return fmt.Errorf("exec: %w", err)
	}
	env, err := pointers(s.environment())
	if err != nil {
		return fmt.Errorf("exec: %w", err)
	}
	filter, err := seccompFilter(unix.Getpid())
	if err != nil {
		return err
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	late := s.lateLimits()

	for i := range late {
		if _, _, e := unix.RawSyscall6(unix.SYS_PRLIMIT64, 0, late[i].resource,
			uintptr(unsafe.Pointer(&late[i].limit)), 0, 0, 0); e != 0 {
			fail("late rlimits refused")
		}
	}
	if _, _, e := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0,
		uintptr(unsafe.Pointer(&prog))); e != 0 {
		fail("seccomp filter refused")
	}
	unix.RawSyscall(unix.SYS_EXECVE, uintptr(unsafe.Pointer(path)),
		uintptr(unsafe.Pointer(&args[0])), uintptr(unsafe.Pointer(&env[0])))
	fail("execve of the interpreter refused")
	return nil
}

// fail reports without allocating and ends the process.
func fail(why string) {
	unix.RawSyscall(unix.SYS_WRITE, reportFD, uintptr(unsafe.Pointer(unsafe.StringData(why))), uintptr(len(why)))
	unix.RawSyscall(unix.SYS_EXIT_GROUP, setupExit, 0, 0)
}

// pointers is list as the NULL-terminated array that execve wants.
func pointers(list []string) ([]*byte, error) {
	out := make([]*byte, len(list)+1)
	for i, v := range list {
		p, err := unix.BytePtrFromString(v)
		if err != nil {
			return nil, err
		}
		out[i] = p
	}
	return out, nil
}
