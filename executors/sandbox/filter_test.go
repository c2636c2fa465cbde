//go:build linux && (amd64 || arm64)

package sandbox

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// TestFilterIsItsRules runs the compiled filter beside the rules as they read:
// every number, with arguments that meet and that miss each alternative.
func TestFilterIsItsRules(t *testing.T) {
	rules := seccompRules(1)
	filter, err := seccompFilter(rules)
	if err != nil {
		t.Fatal(err)
	}
	var raw []bpf.RawInstruction
	for _, f := range filter {
		raw = append(raw, bpf.RawInstruction{Op: f.Code, Jt: f.Jt, Jf: f.Jf, K: f.K})
	}
	program, ok := bpf.Disassemble(raw)
	if !ok {
		t.Fatal("not all of it is an instruction")
	}
	vm, err := bpf.NewVM(program)
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	try := func(arch, nr uint32, args [6]uint64, want uint32) {
		tried++
		// The interpreter loads words as a network sends them.
		data := binary.BigEndian.AppendUint32(nil, nr)
		data = binary.BigEndian.AppendUint32(data, arch)
		data = binary.BigEndian.AppendUint64(data, 0) // instruction pointer
		for _, a := range args {
			data = binary.BigEndian.AppendUint32(data, uint32(a))
			data = binary.BigEndian.AppendUint32(data, uint32(a>>32))
		}
		got, err := vm.Run(data)
		if err != nil || uint32(got) != want {
			t.Errorf("arch %#x call %d %#x: %#x (%v), want %#x", arch, nr, args, got, err, want)
		}
	}
	byNumber := map[uint32]rule{}
	for _, r := range rules {
		byNumber[r.nr] = r
	}
	for nr := range uint32(1000) {
		try(auditArch, nr, [6]uint64{}, decide(byNumber, nr, [6]uint64{}))
		for _, args := range near(byNumber[nr]) {
			try(auditArch, nr, args, decide(byNumber, nr, args))
		}
		try(unix.AUDIT_ARCH_I386, nr, [6]uint64{}, actKill)
		try(auditArch, x32Bit+nr, [6]uint64{}, actKill)
		try(auditArch, -nr-1, [6]uint64{}, actKill)
		try(auditArch, x32Bit-nr-1, [6]uint64{}, actDeny)
	}
	if tried < 5000 {
		t.Errorf("tried %d calls only", tried)
	}
}

// decide is what the rules say of a call.
func decide(rules map[uint32]rule, nr uint32, args [6]uint64) uint32 {
	r, named := rules[nr]
	if !named {
		return actDeny
	}
	if len(r.any) == 0 {
		return r.action
	}
	switch allowed, done := meets(r.any, args), meets(r.done, args); {
	case allowed && done:
		return ^uint32(0) // which of the two is not left to their order
	case allowed:
		return r.action
	case done:
		return actDone
	}
	return actDeny
}

// meets reports whether all checks of an alternative hold.
func meets(any [][]check, args [6]uint64) bool {
	return slices.ContainsFunc(any, func(all []check) bool {
		return !slices.ContainsFunc(all, func(c check) bool {
			v := uint32(args[c.arg])
			if c.high {
				v = uint32(args[c.arg] >> 32)
			}
			return v&c.mask != c.want
		})
	})
}

// near are arguments that meet an alternative of r, and some that just do not:
// for each check one more bit, in the half that is looked at and in the other.
func near(r rule) [][6]uint64 {
	var list [][6]uint64
	for _, all := range slices.Concat(r.any, r.done) {
		var meets [6]uint64
		for _, c := range all {
			shift := 0
			if c.high {
				shift = 32
			}
			meets[c.arg] |= uint64(c.want) << shift
		}
		list = append(list, meets)
		for _, c := range all {
			for bit := range 64 {
				misses := meets
				misses[c.arg] ^= 1 << bit
				list = append(list, misses)
			}
		}
	}
	return list
}

// TestFilterRefusesTwoRules: which of two would hold is not left to their order.
func TestFilterRefusesTwoRules(t *testing.T) {
	if _, err := seccompFilter([]rule{{nr: 1, action: actAllow}, {nr: 1, action: actKill}}); err == nil {
		t.Error("accepted")
	}
}

// TestFilterRefusesTheRest tries every system call number without a rule: none
// may answer anything but EPERM.
func TestFilterRefusesTheRest(t *testing.T) {
	const last = 480
	named := map[uint32]bool{}
	for _, r := range seccompRules(1) {
		named[r.nr] = true
	}
	// Only the kernel's own trampolines make these two; anywhere else they raise
	// SIGILL, and recent kernels let them pass every filter for that.
	const uretprobe, uprobe = 335, 336
	named[uretprobe], named[uprobe] = true, true
	var rest []string
	for nr := range uint32(last) {
		if !named[nr] {
			rest = append(rest, fmt.Sprint(nr))
		}
	}
	if len(rest) < 150 {
		t.Fatalf("only %d calls are refused", len(rest))
	}
	script := Prelude + `
for nr in [` + strings.Join(rest, ",") + `]:
    try:
        print(nr, syscall(nr, 0, 0, 0, 0, 0, 0))
    except OSError as e:
        if e.errno != errno.EPERM:
            print(nr, e)
`
	for _, name := range available(t) {
		t.Run(name, func(t *testing.T) {
			res := run(t, open(t, Config{Driver: name, Workers: -1}).Native(), Job{Script: script})
			if res.Outcome != OK || len(res.Output) > 0 {
				t.Errorf("%s %s\n%s", res.Outcome, res.Error, res.Output)
			}
		})
	}
}

// TestFilterKillsHostile tries each call of the hostile list.
func TestFilterKillsHostile(t *testing.T) {
	s := open(t, Config{Workers: -1}).Native()
	for _, nr := range hostile {
		res := run(t, s, Job{Script: Prelude + fmt.Sprintf("syscall(%d, 0, 0, 0, 0, 0, 0)", nr)})
		if res.Outcome != Policy {
			t.Errorf("call %d: %s %s", nr, res.Outcome, res.Error)
		}
	}
}

// Prelude is what probes make system calls with: that of package escape, which this package's own
// tests cannot import.
var Prelude string
