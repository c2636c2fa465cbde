//go:build amd64 || arm64

package sandbox

import (
	"encoding/binary"
	"fmt"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"aob.dev/writ/executors/sandbox/spawn"
)

// program collects the system calls by which a forked process becomes a sandbox. It is
// written here, with all of Go, and executed in the fork, where no Go code can run: see
// package spawn.
type program struct {
	spawn.Program
	steps []string // what each call is for
	step  string   // of the calls that follow
	err   error    // the first; later calls are ignored
}

// step is one part of a program: the purpose of its calls, and the function that writes them.
type step struct {
	name  string
	layer layers // 0: in every program
	write func(*program)
}

// compile writes a program of the steps without layer and those of a layer in has. Their
// order matters: a step may only use rights that no earlier step took away.
func compile(has layers, steps []step) (*program, error) {
	p := &program{}
	for _, s := range steps {
		if s.layer != 0 && has&s.layer == 0 {
			continue
		}
		p.step = s.name
		if s.write(p); p.err != nil {
			return nil, p.err
		}
	}
	return p, nil
}

// fail records the first error.
func (p *program) fail(err error) {
	if p.err == nil {
		p.err = err
	}
}

// arg is an argument of a system call: a number, or an offset into Data.
type arg struct {
	value   uint64
	pointer bool
}

type integer interface {
	~int | ~uint | ~int32 | ~uint32 | ~int64 | ~uint64 | ~uintptr
}

func num[T integer](v T) arg { return arg{value: uint64(v)} }

// call appends a system call. Arguments that are missing are zero.
func (p *program) call(number uintptr, args ...arg) {
	c := spawn.Call{Number: uint64(number)}
	for i, a := range args {
		c.Args[i] = a.value
		if a.pointer {
			c.Pointers |= 1 << i
		}
	}
	p.Calls = append(p.Calls, c)
	p.steps = append(p.steps, p.step)
}

// store has the low 32 bits of the last call's result put into Data at a.
func (p *program) store(a arg, offset uint64) {
	p.Calls[len(p.Calls)-1].Store = a.value + offset + 1
}

// bytes puts b into Data, aligned to 8 bytes.
func (p *program) bytes(b []byte) arg {
	for len(p.Data)%8 != 0 {
		p.Data = append(p.Data, 0)
	}
	at := arg{value: uint64(len(p.Data)), pointer: true}
	p.Data = append(p.Data, b...)
	return at
}

// text puts a string into Data as C has it.
func (p *program) text(s string) arg {
	if strings.IndexByte(s, 0) >= 0 {
		p.fail(fmt.Errorf("%s: %q holds a zero byte", p.step, s))
	}
	return p.bytes(append([]byte(s), 0))
}

// texts puts strings into Data as the NULL-terminated array that execve wants.
func (p *program) texts(list []string) arg {
	var words []byte
	for _, s := range list {
		words = binary.NativeEndian.AppendUint64(words, p.text(s).value)
	}
	at := p.bytes(append(words, make([]byte, 8)...))
	for i := range list {
		p.pointerAt(at, 8*i)
	}
	return at
}

// execute becomes another program.
func (p *program) execute(argv, env []string) {
	p.call(unix.SYS_EXECVE, p.text(argv[0]), p.texts(argv), p.texts(env))
}

// filter installs a seccomp filter for everything after it.
func (p *program) filter(f filterCode) {
	at := p.bytes(f.code)
	for _, offset := range f.pids {
		p.call(unix.SYS_GETPID)
		p.store(at, offset)
	}
	// struct sock_fprog: u16 length, padding, pointer.
	header := binary.NativeEndian.AppendUint16(nil, uint16(len(f.code)/unix.SizeofSockFilter)) //nolint:gosec // G115: within range
	header = append(header, make([]byte, 6)...)
	fprog := p.bytes(binary.NativeEndian.AppendUint64(header, at.value))
	p.pointerAt(fprog, 8)
	p.call(unix.SYS_SECCOMP, num(unix.SECCOMP_SET_MODE_FILTER), num(0), fprog)
}

// limit bounds a process's use of a resource.
func (p *program) limit(resource int, most uint64) {
	limit := unix.Rlimit{Cur: most, Max: most}
	p.call(unix.SYS_PRLIMIT64, num(0), num(resource), value(p, &limit), num(0))
}

// attributes sets those of a mount.
func (p *program) attributes(mount arg, flags uint, set uint64) {
	attr := unix.MountAttr{Attr_set: set}
	p.call(unix.SYS_MOUNT_SETATTR, num(unix.AT_FDCWD), mount, num(flags), value(p, &attr), num(unsafe.Sizeof(attr)))
}

// pivot makes the current directory the root, and detaches the old one.
func (p *program) pivot(hostName string) {
	here := p.text(".")
	p.step = "pivot_root"
	// The old root ends up on top of the new one and is detached from there.
	p.call(unix.SYS_PIVOT_ROOT, here, here)
	p.step = "detach old root"
	p.call(unix.SYS_UMOUNT2, here, num(unix.MNT_DETACH))
	p.step = "host name"
	p.call(unix.SYS_SETHOSTNAME, p.text(hostName), num(len(hostName)))
}

// pointerAt marks the word at a, an offset, to be replaced by an address.
func (p *program) pointerAt(a arg, offset int) {
	p.Pointers = append(p.Pointers, a.value+uint64(offset)) //nolint:gosec // G115: within range
}

// value puts v, which has no pointers, into Data as the kernel reads it.
func value[T any](p *program, v *T) arg {
	return p.bytes(unsafe.Slice((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v))) //nolint:gosec // G103: the layout is the kernel's
}

// explain is the error of a failure of the sandbox.
func (p *program) explain(f spawn.Failure) error {
	if f.Call < 0 || f.Call >= len(p.steps) {
		return fmt.Errorf("release the sandbox: %w", f.Errno)
	}
	return fmt.Errorf("%s: %w", p.steps[f.Call], f.Errno)
}
