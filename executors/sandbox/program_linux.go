//go:build amd64 || arm64

package sandbox

import (
	"encoding/binary"
	"fmt"
	"strings"
	"unsafe"

	"aob.dev/writ/executors/sandbox/spawn"
)

// program collects what a forked process does to become a sandbox. It is written
// here, where all of Go is at hand, and carried out there, where nothing is: see
// package spawn.
type program struct {
	spawn.Program
	steps []string // what each call is for
	step  string   // of the calls that follow
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
func (p *program) text(s string) (arg, error) {
	if strings.IndexByte(s, 0) >= 0 {
		return arg{}, fmt.Errorf("%s: %q holds a zero byte", p.step, s)
	}
	return p.bytes(append([]byte(s), 0)), nil
}

// texts puts strings into Data as the NULL-terminated array that execve wants.
func (p *program) texts(list []string) (arg, error) {
	var words []byte
	for _, s := range list {
		a, err := p.text(s)
		if err != nil {
			return arg{}, err
		}
		words = binary.NativeEndian.AppendUint64(words, a.value)
	}
	at := p.bytes(append(words, make([]byte, 8)...))
	for i := range list {
		p.pointerAt(at, 8*i)
	}
	return at, nil
}

// pointerAt says that the word at a, which holds an offset, has to become an
// address.
func (p *program) pointerAt(a arg, offset int) {
	p.Pointers = append(p.Pointers, a.value+uint64(offset)) //nolint:gosec // G115: within range
}

// value puts v, which holds no pointers, into Data as the kernel reads it.
func value[T any](p *program, v *T) arg {
	return p.bytes(unsafe.Slice((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v))) //nolint:gosec // G103: the layout is the kernel's
}

// explain is a failure of the sandbox in words.
func (p *program) explain(f spawn.Failure) error {
	if f.Call < 0 || f.Call >= len(p.steps) {
		return fmt.Errorf("release the sandbox: %w", f.Errno)
	}
	return fmt.Errorf("%s: %w", p.steps[f.Call], f.Errno)
}
