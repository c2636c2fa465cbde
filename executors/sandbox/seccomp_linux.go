//go:build amd64 || arm64

package sandbox

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"
)

// The filter is an allowlist: what no rule names fails with EPERM, so a system
// call that a future kernel adds is refused from its first day.

// check compares one 32-bit half of a system call argument after masking.
// Arguments that the kernel takes as 32 bits need only their low half.
type check struct {
	arg  uint32 // 0 to 5
	high bool
	mask uint32
	want uint32
}

// rule decides one system call: if all checks of any alternative hold, or if
// there are none, then action; otherwise EPERM.
type rule struct {
	nr     uint32
	any    [][]check
	action uint32
}

const (
	actAllow  = unix.SECCOMP_RET_ALLOW
	actDeny   = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	actKill   = unix.SECCOMP_RET_KILL_PROCESS
	actNoSys  = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS) // makes libc fall back to an older call
	actNotSup = unix.SECCOMP_RET_ERRNO | uint32(unix.EOPNOTSUPP)
	actDone   = uint32(unix.SECCOMP_RET_ERRNO) // errno 0: answers success and does nothing
)

// Offsets in struct seccomp_data, little-endian.
const (
	dataNr   = 0
	dataArch = 4
	dataArgs = 16
)

// x32Bit marks a call made through the x32 ABI, whose numbers would bypass a
// table of 64-bit ones.
const x32Bit = 0x40000000

// installFilter puts the filter over all that follows. Outside a pid namespace
// the box learns its pid, to which it may send signals, only when it runs.
func installFilter(p *program, s *boxSpec) error {
	const firstPID = 1
	rules := seccompRules(firstPID)
	if s.Layers&layerCode == 0 {
		for i, r := range rules {
			if r.nr == unix.SYS_MMAP || r.nr == unix.SYS_MPROTECT {
				rules[i].any = nil
			}
		}
	}
	filter, err := seccompFilter(rules)
	if err != nil {
		return err
	}
	var code []byte
	for _, f := range filter {
		code = binary.NativeEndian.AppendUint16(code, f.Code)
		code = append(code, f.Jt, f.Jf)
		code = binary.NativeEndian.AppendUint32(code, f.K)
	}
	at := p.bytes(code)
	if !s.OwnPIDs {
		for _, i := range pidOperands(filter) {
			p.call(unix.SYS_GETPID)
			p.store(at, uint64(i*unix.SizeofSockFilter+4)) //nolint:gosec // G115: within range
		}
	}
	// struct sock_fprog: u16 length, padding, pointer.
	header := binary.NativeEndian.AppendUint16(nil, uint16(len(filter))) //nolint:gosec // G115: within range
	header = append(header, make([]byte, 6)...)
	fprog := p.bytes(binary.NativeEndian.AppendUint64(header, at.value))
	p.pointerAt(fprog, 8)
	p.call(unix.SYS_SECCOMP, num(unix.SECCOMP_SET_MODE_FILTER), num(0), fprog)
	return nil
}

// pidOperands are the instructions that compare with the pid: the comparison in
// each rule about signals.
func pidOperands(filter []unix.SockFilter) []int {
	var at []int
	for i, f := range filter {
		if f.Code != unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K || f.K != unix.SYS_KILL && f.K != unix.SYS_TGKILL {
			continue
		}
		// load, mask, compare: as compile writes a check.
		at = append(at, i+3)
	}
	return at
}

// seccompFilter compiles rules.
func seccompFilter(rules []rule) ([]unix.SockFilter, error) {
	prog := []unix.SockFilter{
		load(dataArch),
		jump(unix.BPF_JEQ, auditArch, 1, 0),
		give(actKill),
		load(dataNr),
		jump(unix.BPF_JGE, x32Bit, 0, 1),
		give(actKill),
	}
	for _, r := range rules {
		body, err := r.compile()
		if err != nil {
			return nil, err
		}
		prog = append(prog, jump(unix.BPF_JEQ, r.nr, 0, uint8(len(body)))) //nolint:gosec // G115: within range
		prog = append(prog, body...)
	}
	prog = append(prog, give(actDeny))
	if len(prog) > unix.BPF_MAXINSNS {
		return nil, fmt.Errorf("seccomp: %d instructions are too many", len(prog))
	}
	return prog, nil
}

// compile gives the instructions for r, entered when its number matched. Each
// path through them ends in a return.
func (r rule) compile() ([]unix.SockFilter, error) {
	if len(r.any) == 0 {
		return []unix.SockFilter{give(r.action)}, nil
	}
	var body []unix.SockFilter
	for _, all := range r.any {
		const perCheck = 3 // load, and, jump
		end := perCheck*len(all) + 1
		for i, c := range all {
			offset := dataArgs + 8*c.arg
			if c.high {
				offset += 4
			}
			left := end - perCheck*(i+1) // instructions to skip to the next alternative
			body = append(body, load(offset),
				unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: c.mask},
				jump(unix.BPF_JEQ, c.want, 0, uint8(left))) //nolint:gosec // G115: within range
		}
		body = append(body, give(r.action))
	}
	body = append(body, give(actDeny))
	// A jump in classic BPF reaches 255 instructions.
	if len(body) > 255 {
		return nil, fmt.Errorf("seccomp: rule for call %d is too long", r.nr)
	}
	return body, nil
}

func load(offset uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
}

func jump(op uint16, k uint32, yes, no uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | op | unix.BPF_K, Jt: yes, Jf: no, K: k}
}

func give(action uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: action}
}
