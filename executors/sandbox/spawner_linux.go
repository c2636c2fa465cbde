//go:build amd64 || arm64

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"aob.dev/writ/executors/sandbox/spawn"
)

// spawnerName is argv[0] of the process that forks the sandboxes, for lists of
// processes.
const spawnerName = "writ-sandbox-spawner"

// spawner is the client of the process that forks the sandboxes.
//
// That process is started from one operating system thread, which is also the parent of
// its sandboxes. The parent death signal is sent when that thread ends, not the process,
// and Go may end a thread at any time; so this one belongs to a goroutine that lives as
// long as the Sandbox. When it ends, the kernel kills every sandbox that is left.
//
// The process can be in an empty network namespace that its sandboxes inherit, because
// a namespace for each would cost a tenth of a start.
type spawner struct {
	offline  bool // in such a namespace, if the machine permits
	launches chan func()
	done     chan struct{}

	mu     sync.Mutex // one request at a time
	cmd    *exec.Cmd  // nil: not running
	socket int
	shared bool // it is in such a namespace
}

// newSpawner starts the goroutine; the process starts with the first sandbox.
func newSpawner(offline bool) *spawner {
	s := &spawner{offline: offline, launches: make(chan func()), done: make(chan struct{}), socket: -1}
	go s.run()
	return s
}

func (s *spawner) run() {
	// Never unlocked: the thread ends with the goroutine.
	runtime.LockOSThread()
	defer close(s.done)
	for do := range s.launches {
		do()
	}
}

// start forks a sandbox with the given ends of its pipes.
func (s *spawner) start(p *program, e childEnds) (*os.Process, error) {
	files := [4]int{int(e.out.Fd()), int(e.errs.Fd()), int(e.feed.Fd()), int(e.report.Fd())}
	s.mu.Lock()
	defer s.mu.Unlock()
	pid, err := s.ask(p, files)
	if errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET) {
		// It was killed, for example by the kernel for memory.
		s.stop()
		pid, err = s.ask(p, files)
	}
	runtime.KeepAlive(e)
	if pid == 0 {
		return nil, err
	}
	// It cannot be another process: nothing else waits for our children.
	proc, findErr := os.FindProcess(pid)
	if findErr != nil {
		return nil, errors.Join(err, findErr)
	}
	if err != nil {
		_ = proc.Kill()
		_, _ = proc.Wait()
		return nil, fmt.Errorf("map ids: %w", err)
	}
	return proc, nil
}

func (s *spawner) ask(p *program, files [4]int) (int, error) {
	if s.cmd == nil {
		if err := s.launch(); err != nil {
			return 0, fmt.Errorf("start spawner: %w", err)
		}
	}
	inherits := p.Program
	if s.shared {
		inherits.Clone &^= unix.CLONE_NEWNET
	}
	return spawn.Start(s.socket, &inherits, files)
}

func (s *spawner) launch() error {
	if s.offline {
		if err := s.launchIn(networkOnly()); err == nil {
			s.shared = true
			return nil
		}
		// Then each sandbox makes one of its own, or fails.
	}
	s.shared = false
	return s.launchIn(&syscall.SysProcAttr{})
}

// networkOnly starts a process in a network namespace of its own. Users other than root
// need a user namespace for it, in which their ids stay the same.
func networkOnly() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	if uid, gid := os.Geteuid(), os.Getegid(); uid != 0 {
		attr.Cloneflags |= syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
	}
	return attr
}

// launchIn starts the process. It leaves the process group, so that an interrupt reaches
// only this process, and inherits nothing but its socket.
func (s *spawner) launchIn(attr *syscall.SysProcAttr) error {
	ours, theirs, err := spawn.Socket()
	if err != nil {
		return err
	}
	end := os.NewFile(uintptr(theirs), "spawner")
	defer end.Close()
	attr.Pdeathsig, attr.Setsid = syscall.SIGKILL, true
	timeout := unix.NsecToTimeval(setupTimeout.Nanoseconds())
	cmd := &exec.Cmd{
		// The running program, even if its file was replaced since.
		Path:        "/proc/self/exe",
		Args:        []string{spawnerName},
		Env:         spawn.Environment(),
		Dir:         "/",
		ExtraFiles:  []*os.File{end},
		SysProcAttr: attr,
	}
	if err = unix.SetsockoptTimeval(ours, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout); err == nil {
		err = s.command(cmd)
	}
	if err != nil {
		_ = unix.Close(ours)
		return err
	}
	s.cmd, s.socket = cmd, ours
	return nil
}

// command starts another command whose parent death signal has to mean the
// process, not a thread.
func (s *spawner) command(cmd *exec.Cmd) error {
	started := make(chan error, 1)
	s.launches <- func() { started <- cmd.Start() }
	return <-started
}

// stop ends the process. Sandboxes go on; close ends those.
func (s *spawner) stop() {
	if s.cmd == nil {
		return
	}
	_ = unix.Close(s.socket)
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait() // killed
	s.cmd, s.socket = nil, -1
}

// close ends process and thread. No start may follow.
func (s *spawner) close() {
	s.stop()
	close(s.launches)
	<-s.done
}
