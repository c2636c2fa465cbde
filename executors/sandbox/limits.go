package sandbox

import (
	"cmp"
	"fmt"
	"time"
)

// Defaults of Limits, used for each field that is zero.
const (
	DefaultWall    = 30 * time.Second
	DefaultCPU     = 30 * time.Second
	DefaultMemory  = 512 << 20 // bytes of address space
	DefaultOutput  = 500_000   // bytes, decimal: the size that the model knows
	DefaultScratch = 64 << 20  // bytes
	DefaultFiles   = 128       // open descriptors
	DefaultThreads = 16
)

// minMemory is the memory that the interpreter needs to start and report its own failure.
const minMemory = 48 << 20

// maxScript bounds Job.Script, in bytes. A script is read into memory on both
// sides; data belongs in Job.Input.
const maxScript = 1 << 20

// maxInput bounds Job.InputSize, in bytes: under the strong drivers the scratch
// is memory of the host.
const maxInput = 1 << 30

// scratchFiles is the number of inodes of the scratch file system.
const scratchFiles = 1024

// Limits bound one run. The zero value means the defaults. A run is always one
// process: fork is refused, which is what makes per-process limits total.
type Limits struct {
	Wall    time.Duration // from the hand-over of the script to the end of the process
	CPU     time.Duration // of all threads, rounded up to seconds
	Memory  int64         // bytes of address space (RLIMIT_AS)
	Output  int64         // bytes of standard output and standard error together
	Scratch int64         // bytes of files written; an input above half of it gets room of its own
	Files   int           // open descriptors
	Threads int           // not enforced by the landlock driver of a plain user, where Memory bounds them
}

// normalize fills in the defaults and refuses values no run could work with.
func (l Limits) normalize() (Limits, error) {
	if l.Wall < 0 || l.CPU < 0 || l.Memory < 0 || l.Output < 0 || l.Scratch < 0 || l.Files < 0 || l.Threads < 0 {
		return Limits{}, fmt.Errorf("sandbox limits: negative value")
	}
	l.Wall = cmp.Or(l.Wall, DefaultWall)
	l.CPU = cmp.Or(l.CPU, DefaultCPU)
	l.Memory = cmp.Or(l.Memory, DefaultMemory)
	l.Output = cmp.Or(l.Output, DefaultOutput)
	l.Scratch = cmp.Or(l.Scratch, DefaultScratch)
	l.Files = cmp.Or(l.Files, DefaultFiles)
	l.Threads = cmp.Or(l.Threads, DefaultThreads)
	if l.Memory < minMemory {
		return Limits{}, fmt.Errorf("sandbox limits: memory %d is below the %d bytes the interpreter needs", l.Memory, minMemory)
	}
	if l.Files < 8 {
		return Limits{}, fmt.Errorf("sandbox limits: files %d is below 8", l.Files)
	}
	return l, nil
}

// cpuSeconds is CPU in the unit of RLIMIT_CPU.
func (l Limits) cpuSeconds() uint64 {
	return uint64((l.CPU-1)/time.Second + 1) //nolint:gosec // G115: within range
}
