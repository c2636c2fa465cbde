package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

// machine is where and when something was measured. What the system does not tell is empty.
type machine struct {
	Go     string    `json:"go"`
	System string    `json:"system"` // GOOS/GOARCH
	Kernel string    `json:"kernel"`
	CPU    string    `json:"cpu"`
	CPUs   int       `json:"cpus"`
	Memory string    `json:"memory"`
	Load   string    `json:"load"` // of the last minute, before the measurement
	At     time.Time `json:"at"`
}

func thisMachine() machine {
	load, _, _ := strings.Cut(line("/proc/loadavg", ""), " ")
	return machine{
		Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH,
		Kernel: line("/proc/sys/kernel/osrelease", ""), CPU: line("/proc/cpuinfo", "model name"), CPUs: runtime.NumCPU(),
		Memory: line("/proc/meminfo", "MemTotal"), Load: load, At: time.Now().UTC().Truncate(time.Second),
	}
}

// line is the value of the first line of a file that begins with name, without name and colon.
func line(file, name string) string {
	raw, err := os.ReadFile(file) //nolint:gosec // G304: of this program's choice
	if err != nil {
		return ""
	}
	for l := range strings.Lines(string(raw)) {
		if value, ok := strings.CutPrefix(l, name); ok {
			return strings.TrimLeft(strings.TrimSpace(value), ": \t")
		}
	}
	return ""
}

func (m machine) String() string {
	return fmt.Sprintf("%s %s, Linux %s, %d × %s, memory %s, load %s, %s", m.Go, m.System, m.Kernel, m.CPUs, m.CPU, m.Memory, m.Load, m.At.Format(time.RFC3339))
}
