//go:build linux && (amd64 || arm64)

// Package spawn is the process that forks sandboxes.
//
// A sandbox is a fork that makes a list of system calls, the last of which executes
// Python. Nothing of Go runs in it, so it costs no start of a runtime; and since
// the process that forks is small, its fork copies little, however large the
// program is that asks for it.
//
// The process is the program itself, executed again with a marker in its
// environment. The init function of this package catches that before the
// program's other packages are initialized: it imports nothing but package
// syscall, so that it comes first. Then it serves a socket:
//
//	client ──Program, 4 descriptors──▶ spawner ──clone(CLONE_PARENT)──▶ sandbox
//	       ◀──pid, errno──────────────
//
// The sandbox is a child of the client, which waits for it and may kill it.
package spawn

import (
	"syscall"
	"unsafe"
)

// Descriptors of a sandbox. Standard input is /dev/null.
const (
	OutFD    = 1 // standard output
	ErrFD    = 2 // standard error
	FeedFD   = 3
	ReportFD = 4 // where a failed call is reported; later the program's own
)

// Program is the list of a forked process's calls: Calls in turn until one fails.
//
// Pointers into Data are written as offsets: arguments named by Call.Pointers,
// and the 8-byte words of Data at Pointers.
type Program struct {
	Clone    uintptr // CLONE_NEW* flags
	UIDMap   string  // with CLONE_NEWUSER: lines for uid_map
	GIDMap   string
	Calls    []Call
	Data     []byte
	Pointers []uint64
}

// Call is one system call. It fails if it returns an error.
type Call struct {
	Number   uint64
	Pointers uint64 // bit i: Args[i] is an offset into Data
	Store    uint64 // 0, or one more than the offset in Data of 4 bytes that take the result
	Args     [6]uint64
}

// Failure is written by a sandbox to ReportFD when one of its calls failed.
type Failure struct {
	Call  int // index; -1: it was not released
	Errno syscall.Errno
}

const (
	failureMark = 'F'
	failureSize = 5
)

// ParseFailure reads a Failure; false: b is something else.
func ParseFailure(b []byte) (Failure, bool) {
	if len(b) != failureSize || b[0] != failureMark {
		return Failure{}, false
	}
	return Failure{
		Call:  int(int16(uint16(b[1]) | uint16(b[2])<<8)), //nolint:gosec // G115: within range
		Errno: syscall.Errno(uint16(b[3]) | uint16(b[4])<<8),
	}, true
}

// The message is a sequence of 64-bit words in the byte order of the machine,
// which both ends share: the header, the calls, the pointers, then Data, UIDMap
// and GIDMap as bytes.
type header struct {
	clone                                 uint64
	calls, pointers, data, uidMap, gidMap uint64 // lengths
}

// maxMessage bounds a message, in bytes; a packet on a socket of this kind can
// be a little larger.
const maxMessage = 128 << 10

// marshal is p as a message.
func (p *Program) marshal() []byte {
	h := header{
		uint64(p.Clone), uint64(len(p.Calls)), uint64(len(p.Pointers)),
		uint64(len(p.Data)), uint64(len(p.UIDMap)), uint64(len(p.GIDMap)),
	}
	msg := append([]byte(nil), unsafe.Slice((*byte)(unsafe.Pointer(&h)), unsafe.Sizeof(h))...) //nolint:gosec // G103: the layout is the kernel's
	if len(p.Calls) > 0 {
		msg = append(msg, unsafe.Slice((*byte)(unsafe.Pointer(&p.Calls[0])), uintptr(len(p.Calls))*unsafe.Sizeof(Call{}))...) //nolint:gosec // G103: the layout is the kernel's
	}
	if len(p.Pointers) > 0 {
		msg = append(msg, unsafe.Slice((*byte)(unsafe.Pointer(&p.Pointers[0])), 8*len(p.Pointers))...) //nolint:gosec // G103: the layout is the kernel's
	}
	msg = append(msg, p.Data...)
	msg = append(msg, p.UIDMap...)
	return append(msg, p.GIDMap...)
}

// unmarshal reads a message into p; false: its lengths do not add up. The slices
// share memory with words, which has to be aligned for a Call.
func (p *Program) unmarshal(words []uint64, size int) bool {
	msg := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), size) //nolint:gosec // G103: the layout is the kernel's
	var h header
	if len(msg) < int(unsafe.Sizeof(h)) {
		return false
	}
	h = *(*header)(unsafe.Pointer(&words[0])) //nolint:gosec // G103: the layout is the kernel's
	rest := uint64(len(msg)) - uint64(unsafe.Sizeof(h))
	for _, n := range []uint64{h.calls, h.pointers, h.data, h.uidMap, h.gidMap} {
		if n > maxMessage {
			return false
		}
	}
	callBytes := h.calls * uint64(unsafe.Sizeof(Call{}))
	if h.calls == 0 || rest != callBytes+8*h.pointers+h.data+h.uidMap+h.gidMap {
		return false
	}
	at := uint64(unsafe.Sizeof(h))
	next := func(n uint64) []byte {
		part := msg[at : at+n]
		at += n
		return part
	}
	p.Clone = uintptr(h.clone)
	p.Calls = unsafe.Slice((*Call)(unsafe.Pointer(&next(callBytes)[0])), h.calls) //nolint:gosec // G103: the layout is the kernel's
	p.Pointers = nil
	if part := next(8 * h.pointers); len(part) > 0 {
		p.Pointers = unsafe.Slice((*uint64)(unsafe.Pointer(&part[0])), h.pointers) //nolint:gosec // G103: the layout is the kernel's
	}
	p.Data, p.UIDMap, p.GIDMap = next(h.data), string(next(h.uidMap)), string(next(h.gidMap))
	return p.relocate()
}

// relocate makes addresses of all offsets but Store; false: one points out of
// Data. They stay valid because the garbage collector moves nothing.
func (p *Program) relocate() bool {
	size := uint64(len(p.Data))
	if size == 0 {
		return len(p.Pointers) == 0
	}
	base := uint64(uintptr(unsafe.Pointer(&p.Data[0]))) //nolint:gosec // G103: the layout is the kernel's
	for _, off := range p.Pointers {
		if off%8 != 0 || off+8 > size {
			return false
		}
		word := (*uint64)(unsafe.Pointer(&p.Data[off])) //nolint:gosec // G103: the layout is the kernel's
		if *word >= size {
			return false
		}
		*word += base
	}
	for i := range p.Calls {
		c := &p.Calls[i]
		for j := range c.Args {
			if c.Pointers>>j&1 == 0 {
				continue
			}
			if c.Args[j] >= size {
				return false
			}
			c.Args[j] += base
		}
		if c.Store != 0 && c.Store+3 > size {
			return false
		}
	}
	return true
}
