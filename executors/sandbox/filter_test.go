//go:build linux && (amd64 || arm64)

package sandbox

import (
	_ "embed"
	"fmt"
	"strings"
	"testing"
)

// TestFilterRefusesTheRest tries every system call number without a rule: none
// may answer anything but EPERM.
func TestFilterRefusesTheRest(t *testing.T) {
	const last = 480
	named := map[uint32]bool{}
	for _, r := range seccompRules(1) {
		if named[r.nr] {
			t.Errorf("call %d has two rules", r.nr)
		}
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
	script := prelude + `
for nr in [` + strings.Join(rest, ",") + `]:
    try:
        print(nr, syscall(nr, 0, 0, 0, 0, 0, 0))
    except OSError as e:
        if e.errno != errno.EPERM:
            print(nr, e)
`
	for _, name := range available(t) {
		t.Run(name, func(t *testing.T) {
			res := run(t, open(t, Config{Drivers: []string{name}, Workers: -1}).Native(), Job{Script: script})
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
		res := run(t, s, Job{Script: prelude + fmt.Sprintf("syscall(%d, 0, 0, 0, 0, 0, 0)", nr)})
		if res.Outcome != Policy {
			t.Errorf("call %d: %s %s", nr, res.Outcome, res.Error)
		}
	}
}

// prelude is what probes make system calls with.
//
//go:embed escape/prelude.py
var prelude string
