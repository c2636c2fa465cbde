//go:build linux && (amd64 || arm64)

package spawn

import (
	"syscall"
	"unsafe"
)

const (
	// marker in the environment makes a process of this program the spawner.
	marker = "WRIT_SANDBOX_SPAWNER"

	// socketFD is the spawner's end of the socket.
	socketFD = 3

	// lowFDs is above all descriptors that a sandbox gets by number.
	lowFDs = 10

	descriptors = 4 // that come with a Program
)

// init never returns in the spawner.
//
// The work is in an init function so that it precedes the initialization of the program's other
// packages, which takes longer than several sandboxes.
func init() {
	if v, found := syscall.Getenv(marker); !found || v != "1" {
		return
	}
	if kind, err := syscall.GetsockoptInt(socketFD, syscall.SOL_SOCKET, syscall.SO_TYPE); err != nil || kind != syscall.SOCK_SEQPACKET {
		return // someone set the variable by hand
	}
	serve()
	syscall.Exit(0)
}

// reply answers a Program. With an errno and a pid, the process is being ended.
type reply struct {
	pid   int64
	errno int64
}

// serve forks sandboxes until the client closes the socket.
func serve() {
	words := make([]uint64, maxMessage/8)
	msg := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), maxMessage) //nolint:gosec // G103: the layout is the kernel's
	oob := make([]byte, syscall.CmsgSpace(4*descriptors))
	for {
		n, oobn, _, _, err := syscall.Recvmsg(socketFD, msg, oob, syscall.MSG_CMSG_CLOEXEC)
		if err == syscall.EINTR {
			continue
		}
		if err != nil || n == 0 {
			return
		}
		var p Program
		r := reply{errno: int64(syscall.EINVAL)}
		fds, ok := received(oob[:oobn])
		if ok && p.unmarshal(words, n) {
			r = start(&p, fds)
		}
		for _, fd := range fds {
			_ = syscall.Close(fd)
		}
		if err := syscall.Sendmsg(socketFD, unsafe.Slice((*byte)(unsafe.Pointer(&r)), unsafe.Sizeof(r)), nil, nil, syscall.MSG_NOSIGNAL); err != nil { //nolint:gosec // G103: the layout is the kernel's
			return
		}
	}
}

// received are the descriptors of a message, each at lowFDs or above.
func received(oob []byte) (fds [descriptors]int, ok bool) {
	fds = [descriptors]int{-1, -1, -1, -1}
	list, err := syscall.ParseSocketControlMessage(oob)
	if err != nil || len(list) != 1 {
		return fds, false
	}
	got, err := syscall.ParseUnixRights(&list[0])
	if err != nil {
		return fds, false
	}
	ok = len(got) == descriptors
	for i, fd := range got {
		high := raise(fd)
		if i >= descriptors || high < 0 {
			ok = false
			continue
		}
		fds[i] = high //nolint:gosec // G602: checked before
	}
	return fds, ok
}

// raise moves a descriptor out of the range that a sandbox gets by number; -1: it
// could not.
func raise(fd int) int {
	if fd >= lowFDs {
		return fd
	}
	high, _, errno := syscall.RawSyscall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_DUPFD_CLOEXEC, lowFDs)
	_ = syscall.Close(fd)
	if errno != 0 {
		return -1
	}
	return int(high)
}

// start forks one sandbox and, in a user namespace, maps its ids before it goes on.
func start(p *Program, fds [descriptors]int) reply {
	c := &child{calls: p.Calls, data: unsafe.Pointer(unsafe.SliceData(p.Data)), fds: fds, hold: [2]int{-1, -1}} //nolint:gosec // G103: the layout is the kernel's
	mapped := p.Clone&syscall.CLONE_NEWUSER != 0
	if mapped {
		if err := holdPipe(c); err != nil {
			return reply{errno: errnoOf(err)}
		}
	}
	pid, errno := fork(p.Clone, c)
	if errno != 0 {
		pid = 0
	}
	r := reply{pid: int64(pid), errno: int64(errno)} //nolint:gosec // G115: within range
	if !mapped {
		return r
	}
	if errno == 0 {
		if err := mapIDs(pid, p); err != nil {
			r.errno = errnoOf(err)
		} else {
			_, _ = syscall.Write(c.hold[1], []byte{1})
		}
	}
	// Without a byte the child ends at the end of the pipe.
	_ = syscall.Close(c.hold[0])
	_ = syscall.Close(c.hold[1])
	return r
}

func holdPipe(c *child) error {
	if err := syscall.Pipe2(c.hold[:], syscall.O_CLOEXEC); err != nil {
		return err
	}
	for i, fd := range c.hold {
		if c.hold[i] = raise(fd); c.hold[i] < 0 {
			return syscall.EMFILE
		}
	}
	return nil
}

// mapIDs writes the maps of a process in a user namespace of its own. A user who may not set groups
// outside has to give that up before mapping a gid.
func mapIDs(pid int, p *Program) error {
	dir := "/proc/" + decimal(pid) + "/"
	if err := writeFile(dir+"uid_map", p.UIDMap); err != nil {
		return err
	}
	if syscall.Geteuid() != 0 {
		// ENOENT: a kernel so old that it has no such file needs no such write.
		if err := writeFile(dir+"setgroups", "deny"); err != nil && err != syscall.ENOENT { //nolint:errorlint // as above
			return err
		}
	}
	return writeFile(dir+"gid_map", p.GIDMap)
}

func writeFile(path, text string) error {
	fd, err := syscall.Open(path, syscall.O_WRONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	_, err = syscall.Write(fd, []byte(text))
	return err
}

func decimal(n int) string {
	var b [20]byte
	i := len(b)
	for {
		i--
		b[i] = byte('0' + n%10)
		if n /= 10; n == 0 {
			return string(b[i:])
		}
	}
}

func errnoOf(err error) int64 {
	if e, ok := err.(syscall.Errno); ok { //nolint:errorlint // as above
		return int64(e) //nolint:gosec // G115: within range
	}
	return int64(syscall.EINVAL)
}
