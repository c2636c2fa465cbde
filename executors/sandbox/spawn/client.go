//go:build linux && (amd64 || arm64)

package spawn

import (
	"syscall"
	"unsafe"
)

// Environment of the spawner process: all that it needs. It
// never collects garbage, of which it makes some kilobytes for each sandbox.
func Environment() []string {
	return []string{marker + "=1", "GOMAXPROCS=1", "GOGC=100"}
}

// Socket is the two ends of a connection: one for the client, and one that has
// to become descriptor 3 of the spawner. Both are closed on exec.
func Socket() (client, spawner int, err error) {
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_SEQPACKET|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, -1, err
	}
	return pair[0], pair[1], nil
}

// Start has the spawner at the other end of socket fork p with the given
// descriptors for OutFD, ErrFD, FeedFD and ReportFD. It is not for concurrent
// use of one socket. If the pid is not 0 the process exists and has to be waited
// for, also with an error. The error is an Errno: EPIPE or ECONNRESET if the
// spawner is gone, EAGAIN if it did not answer in the socket's time.
func Start(socket int, p *Program, files [4]int) (pid int, err error) {
	msg := p.marshal()
	if len(msg) > maxMessage {
		return 0, syscall.E2BIG
	}
	if err := retry(func() error {
		return syscall.Sendmsg(socket, msg, syscall.UnixRights(files[:]...), nil, syscall.MSG_NOSIGNAL)
	}); err != nil {
		return 0, err
	}
	var r reply
	buf := unsafe.Slice((*byte)(unsafe.Pointer(&r)), unsafe.Sizeof(r)) //nolint:gosec // G103: the layout is the kernel's
	var n int
	err = retry(func() error {
		var err error
		n, _, err = syscall.Recvfrom(socket, buf, 0)
		return err
	})
	switch {
	case err != nil:
		return 0, err
	case n != len(buf):
		return 0, syscall.EPIPE
	case r.errno != 0:
		return int(r.pid), syscall.Errno(r.errno) //nolint:gosec // G115: within range
	}
	return int(r.pid), nil
}

func retry(do func() error) error {
	for {
		if err := do(); err != syscall.EINTR { //nolint:errorlint // never wrapped
			return err
		}
	}
}
