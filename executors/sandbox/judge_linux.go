//go:build amd64 || arm64

package sandbox

import (
	"fmt"
	"syscall"
	"time"

	"aob.dev/writ/internal/clock"
)

// reported are the limits that a script meets as an exception, by the kind under
// which boot.py reports that.
var reported = map[byte]Limit{'S': ScratchLimit, 'D': FilesLimit, 'T': ThreadsLimit}

// Reports of boot.py before the script begins. Nothing else can have written them.
const (
	inputStored    = 'G' // script and input are stored: the rest may be written by the script
	inputNotStored = 'I'
)

// verdict is how a run ended. The script controls all evidence except the parent's reason for
// ending the run and reports from before the script began.
type verdict struct {
	outcome Outcome
	limit   Limit
	text    string
}

var (
	canceled = verdict{outcome: Canceled, text: "ended from outside"}
	noInput  = verdict{outcome: NoInput, text: "the input could not be read"}
)

// exit is how a process ended.
type exit struct {
	code   int            // -1 if ended by a signal
	signal syscall.Signal // 0: none
	cpu    time.Duration
}

// ended reads the state of a process that ended.
func (b *Instance) ended() exit {
	e := exit{code: b.state.ExitCode(), cpu: b.state.UserTime() + b.state.SystemTime()}
	if status, ok := b.state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		e.signal = status.Signal()
	}
	return e
}

// judge labels the end of a run: the parent's own reason first, then the
// signal, then what boot.py reported.
func judge(why Outcome, e exit, report []byte, l Limits) verdict {
	switch why {
	case Timeout:
		return verdict{outcome: Timeout, limit: WallLimit, text: fmt.Sprintf("ended after %s", clock.Words(l.Wall))}
	case OversizedOutput:
		return verdict{outcome: OversizedOutput, limit: OutputLimit, text: fmt.Sprintf("more than %d bytes of output", l.Output)}
	case Memory:
		return verdict{outcome: Memory, limit: MemoryLimit, text: "too many mappings, too far apart"}
	case Canceled:
		return canceled
	case NoInput:
		return noInput
	default: // it ended by itself
	}
	if e.signal != 0 {
		return judgeSignal(e, l)
	}
	input, report := first(report)
	switch input {
	case inputStored:
		return judgeReport(e, report)
	case inputNotStored:
		return verdict{outcome: NoInput, text: string(report)}
	}
	return verdict{outcome: Crash, text: "it ended before the script began"}
}

// judgeReport reads data that the script controls, so it decides only the label of the run.
func judgeReport(e exit, report []byte) verdict {
	kind, text := first(report)
	switch {
	case kind == 'M':
		return verdict{outcome: Memory, limit: MemoryLimit, text: string(text)}
	case kind == 'E' || reported[kind] != NoLimit:
		return verdict{outcome: ScriptError, limit: reported[kind], text: string(text)}
	case e.code != 0:
		return verdict{outcome: ScriptError, text: fmt.Sprintf("exit status %d", e.code)}
	}
	return verdict{outcome: OK}
}

// first is the first byte and the rest; 0 if there is none.
func first(b []byte) (byte, []byte) {
	if len(b) == 0 {
		return 0, nil
	}
	return b[0], b[1:]
}

func judgeSignal(e exit, l Limits) verdict {
	sig := e.signal
	switch {
	case sig == sigPolicy:
		return verdict{outcome: Policy, text: "forbidden system call"}
	// The kernel enforces the limit on sampled ticks but reports exact time,
	// which on a busy or virtual machine can be far less. Half is a safe sign:
	// the other SIGKILL that is not ours comes from the memory killer.
	case sig == sigCPU || sig == syscall.SIGKILL && e.cpu >= l.CPU/2:
		return verdict{outcome: Timeout, limit: CPULimit, text: fmt.Sprintf("used %s of processor time", clock.Words(l.CPU))}
	case sig == syscall.SIGKILL:
		return verdict{outcome: Memory, limit: MemoryLimit, text: "killed by the kernel"}
	}
	return verdict{outcome: Crash, text: "signal: " + sig.String()}
}
