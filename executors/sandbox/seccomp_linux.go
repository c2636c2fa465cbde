//go:build amd64 || arm64

package sandbox

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// The filter is an allowlist: a call that no rule names fails with EPERM, so a system
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
// there are none, then action; if those of an alternative of done hold, success
// without effect; otherwise EPERM. What any and done admit does not overlap.
type rule struct {
	nr     uint32
	any    [][]check
	done   [][]check
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

// unknownPID stands for the pid of a sandbox that learns it only when it runs. The
// kernel gives out none as high.
const unknownPID = 1<<31 - 1

// installFilter installs the filter for everything after it. Outside a pid namespace
// the sandbox fills in its pid, to which it may send signals.
func (s *sandboxSpec) installFilter(p *program) {
	get := outsideFilter
	if s.OwnPIDs {
		get = insideFilter
	}
	if s.Layers&layerCode == 0 {
		get = lenientFilter
	}
	filter, err := get()
	if err != nil {
		p.fail(err)
		return
	}
	p.filter(filter)
}

// The filters there are, each compiled once: that takes longer than the rest of
// a sandbox's program.
var (
	insideFilter  = sync.OnceValues(func() (filterCode, error) { return encode(seccompRules(1)) })
	outsideFilter = sync.OnceValues(func() (filterCode, error) { return encode(seccompRules(unknownPID)) })
	// lenientFilter admits new machine code.
	lenientFilter = sync.OnceValues(func() (filterCode, error) {
		rules := seccompRules(unknownPID)
		for i, r := range rules {
			if r.nr == unix.SYS_MMAP || r.nr == unix.SYS_MPROTECT {
				rules[i].any = nil
			}
		}
		return encode(rules)
	})
)

// filterCode is a filter as the kernel reads it.
type filterCode struct {
	code []byte
	pids []uint64 // offsets in code that take the pid of the sandbox
}

func encode(rules []rule) (filterCode, error) {
	filter, err := seccompFilter(rules)
	if err != nil {
		return filterCode{}, err
	}
	return filterOf(filter), nil
}

// filterOf is a filter as the kernel reads it.
func filterOf(filter []unix.SockFilter) filterCode {
	var c filterCode
	for _, f := range filter {
		if f.K == unknownPID {
			c.pids = append(c.pids, uint64(len(c.code)+4))
		}
		c.code = binary.NativeEndian.AppendUint16(c.code, f.Code)
		c.code = append(c.code, f.Jt, f.Jf)
		c.code = binary.NativeEndian.AppendUint32(c.code, f.K)
	}
	return c
}

// seccompFilter compiles rules.
func seccompFilter(rules []rule) ([]unix.SockFilter, error) {
	list, err := spans(rules)
	if err != nil {
		return nil, err
	}
	prog := append([]unix.SockFilter{
		load(dataArch),
		jump(unix.BPF_JEQ, auditArch, 1, 0),
		give(actKill),
		load(dataNr),
		jump(unix.BPF_JGE, x32Bit, 0, 1),
		give(actKill),
	}, search(list)...)
	if len(prog) > unix.BPF_MAXINSNS {
		return nil, fmt.Errorf("seccomp: %d instructions are too many", len(prog))
	}
	return prog, nil
}

// span is the numbers from first to the next span that are decided alike: by
// body, each path through which ends in a return.
type span struct {
	first uint32
	body  []unix.SockFilter
}

// spans are all numbers, in order.
func spans(rules []rule) ([]span, error) {
	rules = slices.SortedFunc(slices.Values(rules), func(a, b rule) int { return cmp.Compare(a.nr, b.nr) })
	deny := []unix.SockFilter{give(actDeny)}
	list := []span{{0, deny}}
	begin := func(first uint32, body []unix.SockFilter) {
		if list[len(list)-1].first == first {
			list = list[:len(list)-1]
		}
		if len(list) == 0 || !slices.Equal(list[len(list)-1].body, body) {
			list = append(list, span{first, body})
		}
	}
	for i, r := range rules {
		if i > 0 && rules[i-1].nr == r.nr {
			return nil, fmt.Errorf("seccomp: call %d has two rules", r.nr)
		}
		body, err := r.compile()
		if err != nil {
			return nil, err
		}
		begin(r.nr, body)
		begin(r.nr+1, deny)
	}
	return list, nil
}

// search finds the span of the loaded number in a few comparisons. The kernel
// evaluates the filter for every number when it is installed: one comparison for
// each rule took longer than to fork the sandbox.
func search(list []span) []unix.SockFilter {
	if len(list) == 1 {
		return list[0].body
	}
	const reach = 255 // of a conditional jump, in instructions
	middle := len(list) / 2
	low, high := search(list[:middle]), search(list[middle:])
	first := list[middle].first
	var prog []unix.SockFilter
	if len(low) <= reach {
		prog = append(prog, jump(unix.BPF_JGE, first, uint8(len(low)), 0)) //nolint:gosec // G115: within reach
	} else {
		prog = append(prog, jump(unix.BPF_JGE, first, 0, 1),
			unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JA, K: uint32(len(low))}) //nolint:gosec // G115: within range
	}
	return slices.Concat(prog, low, high)
}

// compile gives the instructions for r, entered when its number matched. Each
// path through them ends in a return.
func (r rule) compile() ([]unix.SockFilter, error) {
	if len(r.any) == 0 {
		return []unix.SockFilter{give(r.action)}, nil
	}
	body := slices.Concat(alternatives(r.any, r.action), alternatives(r.done, actDone), []unix.SockFilter{give(actDeny)})
	// A jump in classic BPF reaches 255 instructions.
	if len(body) > 255 {
		return nil, fmt.Errorf("seccomp: rule for call %d is too long", r.nr)
	}
	return body, nil
}

// alternatives return action if all checks of one of them hold, and else continue after them.
func alternatives(any [][]check, action uint32) []unix.SockFilter {
	var body []unix.SockFilter
	for _, all := range any {
		one := []unix.SockFilter{give(action)}
		for _, c := range slices.Backward(all) {
			one = append(c.compile(len(one)), one...)
		}
		body = append(body, one...)
	}
	return body
}

// compile gives the instructions for c, which skip the next ones if it fails.
func (c check) compile(skip int) []unix.SockFilter {
	offset := dataArgs + 8*c.arg
	if c.high {
		offset += 4
	}
	prog := []unix.SockFilter{load(offset)}
	if c.mask != all32 {
		prog = append(prog, unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: c.mask})
	}
	return append(prog, jump(unix.BPF_JEQ, c.want, 0, uint8(skip))) //nolint:gosec // G115: within range, see rule.compile
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
