package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// Errors of Run that the caller can act on. A fault of the script itself is an Outcome,
// not an error.
var (
	ErrScript    = errors.New("script is larger than 1 MiB")
	ErrInputSize = errors.New("input does not fit its scratch space")
)

// Errors of Run when a run did not get its turn. No sandbox was started.
var (
	ErrClosed = errors.New("sandbox is closed")
	ErrBusy   = errors.New("too many runs wait for their turn")
)

// Runner runs jobs in sandboxes of one driver; *Sandbox is one.
type Runner interface {
	Driver() string // its name
	Run(ctx context.Context, job Job) (Result, error)
}

var _ Runner = (*Sandbox)(nil)

// Job is one script and the data it works on.
type Job struct {
	// Tenant is the owner of the run. Tenants take turns when runs have to wait, and
	// none gets all places. Tenant makes no other difference.
	Tenant string

	// Queue bounds the wait for the run's turn, and Time the run from then on, with
	// the start of its sandbox; 0: only the context does.
	Queue, Time time.Duration

	// Script is Python source, at most 1 MiB. It finds the path of its input in
	// the variable input_file (None without Input) and prints its result. It has
	// the standard library, but no network, subprocess or asyncio.
	Script string

	// Input is streamed to the sandbox and never wholly in memory; nil for
	// none. Run does not return while a Read is in progress, so a Reader that
	// can block for long should be bound to the context given to Run.
	Input io.Reader

	// InputSize is the length of Input in bytes, at most 1 GiB, or 0 if
	// unknown; an input of unknown length has to fit into Limits.Scratch.
	InputSize int64

	// Stderr gets the script's standard error while it runs, as hostile as Output; nil: discarded.
	// Limits.Output bounds both together. Run does not return while a Write is in progress.
	Stderr io.Writer

	// Limits of this run. A job whose limits are those of the sandbox can use
	// a prewarmed worker.
	Limits Limits
}

// Outcome is the reason for the end of a run.
type Outcome string

// The closed set of outcomes.
const (
	OK              Outcome = "ok"
	Timeout         Outcome = "timeout"          // Wall or CPU
	OversizedOutput Outcome = "oversized_output" // Output; the first bytes are kept
	Memory          Outcome = "memory"           // MemoryError, or killed by the kernel for memory
	Policy          Outcome = "policy"           // killed for a system call no script has reason to make
	Crash           Outcome = "crash"            // ended by another signal
	ScriptError     Outcome = "script_error"     // uncaught exception or non-zero exit status

	// Run has an error beside these.
	Canceled Outcome = "canceled" // ended from outside, by its context or with the sandbox
	NoInput  Outcome = "no_input" // the input could not be read or stored: the script did not begin
)

// Limit names the limit that ended a run.
type Limit string

// The closed set of limits, by their fields in Limits.
const (
	NoLimit     Limit = ""
	WallLimit   Limit = "wall"
	CPULimit    Limit = "cpu"
	MemoryLimit Limit = "memory"
	OutputLimit Limit = "output"

	// The script met these as an exception that it did not catch.
	ScratchLimit Limit = "scratch"
	FilesLimit   Limit = "files"
	ThreadsLimit Limit = "threads"
)

// Result is the result of one run.
type Result struct {
	Outcome Outcome
	Limit   Limit // the one that ended it, with Timeout, OversizedOutput, Memory and some ScriptErrors

	// Output is the script's standard output, at most Limits.Output bytes, unescaped: treat it as
	// hostile.
	Output []byte

	// Error is the traceback of a ScriptError or Memory outcome, reduced to
	// frames of the script itself ("script.py", line N), or one line on how
	// the run ended. Empty if the outcome is OK. Hostile like Output.
	Error string

	ScriptSHA256 string        // hex
	Driver       string        // name of the sandbox's driver
	Python       string        // version, as in 3.11.2
	Queued       time.Duration // wait for its turn
	Duration     time.Duration // wall time from hand-over to end
	CPU          time.Duration // of the whole sandbox, its start included
	ExitCode     int           // -1 if ended by a signal
	InputBytes   int64         // bytes of Input handed to the sandbox
	Warm         bool          // a prewarmed worker took it
}

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
