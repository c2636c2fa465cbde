//go:build linux && (amd64 || arm64)

package spawn

import (
	"syscall"
	"unsafe"
)

const (
	sigBlockAll = ^uint64(0)
	signals     = 64
	sigSetSize  = 8
)

// child has the data of a forked process. All of it is made before the fork.
type child struct {
	calls []Call
	data  unsafe.Pointer // that Store is an offset in
	fds   [4]int         // for OutFD, ErrFD, FeedFD and ReportFD; none is below lowFDs
	hold  [2]int         // pipe: a byte releases the child; -1, -1: nothing to wait for
}

// fork clones the process and returns its pid. The child never returns.
//
// Signals are blocked across the clone, so that no handler of the Go runtime
// runs in the child, where the threads that the runtime counts on do not exist.
//
//go:noinline
//go:norace
//go:nocheckptr
func fork(flags uintptr, c *child) (int, syscall.Errno) {
	all, old, def := sigBlockAll, uint64(0), [4]uint64{}
	_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGPROCMASK, sigSetmask, uintptr(unsafe.Pointer(&all)), uintptr(unsafe.Pointer(&old)), sigSetSize, 0, 0) //nolint:gosec // G103: the layout is the kernel's
	pid, _, errno := syscall.RawSyscall6(syscall.SYS_CLONE, flags|syscall.CLONE_PARENT|uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
	if errno == 0 && pid == 0 {
		c.become(&def)
	}
	_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGPROCMASK, sigSetmask, uintptr(unsafe.Pointer(&old)), 0, sigSetSize, 0, 0) //nolint:gosec // G103: the layout is the kernel's
	return int(pid), errno
}

const sigSetmask = 2

// become runs the child to its end. Nothing here may allocate, grow the stack or
// take a lock: raw system calls only.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (c *child) become(def *[4]uint64) {
	for s := uintptr(1); s <= signals; s++ {
		// It fails for SIGKILL and SIGSTOP, which need no reset.
		_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, s, uintptr(unsafe.Pointer(def)), 0, sigSetSize, 0, 0) //nolint:gosec // G103: the layout is the kernel's
	}
	_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGPROCMASK, sigSetmask, uintptr(unsafe.Pointer(&def[0])), 0, sigSetSize, 0, 0) //nolint:gosec // G103: the layout is the kernel's
	for i := range c.fds {
		if _, _, errno := syscall.RawSyscall(syscall.SYS_DUP3, uintptr(c.fds[i]), uintptr(OutFD+i), 0); errno != 0 {
			leave(-1, errno)
		}
	}
	if c.hold[0] >= 0 {
		// The write end first: else this process would wait forever if the spawner ended.
		_, _, _ = syscall.RawSyscall(syscall.SYS_CLOSE, uintptr(c.hold[1]), 0, 0)
		var b byte
		n, _, errno := syscall.RawSyscall(syscall.SYS_READ, uintptr(c.hold[0]), uintptr(unsafe.Pointer(&b)), 1) //nolint:gosec // G103: the layout is the kernel's
		if n != 1 {
			leave(-1, errno)
		}
	}
	for i := range c.calls {
		call := &c.calls[i]
		r, _, errno := syscall.RawSyscall6(uintptr(call.Number), uintptr(call.Args[0]), uintptr(call.Args[1]), uintptr(call.Args[2]),
			uintptr(call.Args[3]), uintptr(call.Args[4]), uintptr(call.Args[5]))
		if errno != 0 {
			leave(i, errno)
		}
		if call.Store != 0 {
			*(*uint32)(unsafe.Add(c.data, call.Store-1)) = uint32(r) //nolint:gosec // G115: within range
		}
	}
	leave(-1, 0)
}

// leave reports the failure on ReportFD and ends the process.
//
//go:nosplit
//go:norace
//go:nocheckptr
func leave(call int, errno syscall.Errno) {
	b := [failureSize]byte{failureMark, byte(call), byte(call >> 8), byte(errno), byte(errno >> 8)}     //nolint:gosec // G115: within range
	_, _, _ = syscall.RawSyscall(syscall.SYS_WRITE, ReportFD, uintptr(unsafe.Pointer(&b)), failureSize) //nolint:gosec // G103: the layout is the kernel's
	for {
		_, _, _ = syscall.RawSyscall(syscall.SYS_EXIT_GROUP, exitStatus, 0, 0)
	}
}

// exitStatus of a sandbox that was not built.
const exitStatus = 125
