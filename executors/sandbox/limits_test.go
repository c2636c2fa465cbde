//go:build linux && (amd64 || arm64)

package sandbox

import (
	"io"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestLimits(t *testing.T) {
	tests := []struct {
		name, script string
		limits       Limits
		want         Outcome
		limit        Limit
		text         string
	}{
		{"wall", "import time; time.sleep(600)", Limits{Wall: 300 * time.Millisecond}, Timeout, WallLimit, "300 ms"},
		{"cpu", "while True: pass", Limits{CPU: time.Second}, Timeout, CPULimit, "processor time"},
		{"memory", "x = [0] * (1 << 28)", Limits{}, Memory, MemoryLimit, "MemoryError"},
		{"memory slowly", "x = []\nwhile True: x.append(bytes(1000))", Limits{Memory: 100 << 20}, Memory, MemoryLimit, "MemoryError"},
		{"output at the limit", "print('x' * 99999)", Limits{Output: 100_000}, OK, NoLimit, ""},
		{"output above it", "print('x' * 100000)", Limits{Output: 100_000}, OversizedOutput, OutputLimit, "100000 bytes"},
		{"scratch", "open(input_file, 'wb').write(bytes(3 << 20))", Limits{Scratch: 1 << 20}, ScriptError, ScratchLimit, "OSError"},
		{"files", "f = [open(input_file) for _ in range(50)]", Limits{Files: 20}, ScriptError, FilesLimit, "Too many open files"},
		{"policy", "import time; time.clock_settime(time.CLOCK_REALTIME, 0)", Limits{}, Policy, NoLimit, "forbidden"},
		{"crash", "import faulthandler; faulthandler._read_null()", Limits{}, Crash, NoLimit, "segmentation fault"},
		{"exit", "import sys; sys.exit(3)", Limits{}, ScriptError, NoLimit, "SystemExit: 3"},
	}
	for _, name := range available(t) {
		s := open(t, Config{Driver: name, Workers: -1})
		for _, tt := range tests {
			t.Run(name+"/"+tt.name, func(t *testing.T) {
				res := run(t, s, Job{Script: tt.script, Input: strings.NewReader("data"), Limits: tt.limits})
				if res.Outcome != tt.want || res.Limit != tt.limit || !strings.Contains(res.Error, tt.text) {
					t.Errorf("%s by %q: %s; want %s by %q with %q", res.Outcome, res.Limit, res.Error, tt.want, tt.limit, tt.text)
				}
			})
		}
	}
}

func TestOversizedOutputKeepsTheStart(t *testing.T) {
	s := open(t, Config{Limits: Limits{Output: 10}})
	res := run(t, s, Job{Script: "print('0123456789abcdef')"})
	if res.Outcome != OversizedOutput || string(res.Output) != "0123456789" {
		t.Errorf("%s %q", res.Outcome, res.Output)
	}
}

// TestLargeInputIsStreamed sends more than the scratch holds by default, and
// more than the parent may hold at any time.
func TestLargeInputIsStreamed(t *testing.T) {
	const size = 100 << 20
	s := open(t, Config{})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	res := run(t, s, Job{
		Script: "import os; print(os.stat(input_file).st_size); open('more', 'wb').write(bytes(1 << 20))",
		Input:  io.LimitReader(zeros{}, size), InputSize: size,
	})
	runtime.ReadMemStats(&after)
	if string(res.Output) != "104857600\n" || res.Outcome != OK || res.InputBytes != size {
		t.Errorf("%s %q %s, %d bytes", res.Outcome, res.Output, res.Error, res.InputBytes)
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 8<<20 {
		t.Errorf("allocated %d bytes", grown)
	}
}
