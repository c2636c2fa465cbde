//go:build amd64 || arm64

package sandbox

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"aob.dev/writ/executors/sandbox/spawn"
)

// How the sandbox changes its root directory.
const (
	rootPivot = "pivot" // own mount namespace: the runtime becomes /, scratch is a tmpfs
	rootKeep  = "keep"  // paths stay those of the host
)

// layers are the parts of a sandbox that a driver may lack, besides its namespaces
// and root.
type layers uint

const (
	layerLandlock layers = 1 << iota
	layerSeccomp
	layerCode // of the seccomp rules, those that admit no new machine code
	layerUser // an own uid
	layerCapabilities
	layerRlimits
	layerDescriptors
	layerSession
	layerEnvironment

	allLayers = 1<<iota - 1
)

// sandboxSpec has the parameters of a sandbox.
type sandboxSpec struct {
	Runtime  string // host path of the runtime directory
	Image    image  // the program to execute in it
	Root     string // rootPivot or rootKeep
	Layers   layers // those it gets
	Scratch  string // scratch directory below Runtime, relative; the tmpfs mount point if rootPivot
	ID       int    // uid and gid to become, as seen inside; -1: unchanged
	OwnUser  bool   // no process outside has the sandbox's uid, so RLIMIT_NPROC counts its threads only
	OwnRoot  bool   // starts with all capabilities, in a user namespace
	OwnPIDs  bool   // in a pid namespace
	Landlock int    // lowest Landlock ABI that this driver accepts
	Profile
}

// pathInside is the path that a file of the runtime has once the sandbox is
// entered.
func (s *sandboxSpec) pathInside(rel string) string {
	if s.Root == rootKeep {
		return filepath.Join(s.Runtime, rel)
	}
	return filepath.Join("/", rel)
}

// compile writes the program of a sandbox.
func (s *sandboxSpec) compile() (*program, error) {
	return compile(s.Layers, []step{
		{"descriptors", layerDescriptors, closeDescriptors},
		{"session", layerSession, newSession},
		{"yield", 0, s.yield},
		{"root", 0, s.changeRoot},
		{"no_new_privs", 0, forbidNewPrivileges},
		{"landlock", layerLandlock, s.restrictFiles},
		{"bounding capabilities", layerCapabilities, s.dropBounding},
		{"ids", layerUser, s.becomeUser},
		{"parent death signal", 0, dieWithParent},
		{"rlimits", layerRlimits, s.limitResources},
		{"capabilities", layerCapabilities, dropCapabilities},
		{"seccomp", layerSeccomp, s.installFilter},
		{"execute the interpreter", 0, s.execute},
	})
}

// lowestFD is the descriptor of a file opened in a sandbox.
const lowestFD = spawn.ReportFD + 1

// closeDescriptors closes all but those of the sandbox. The number of a descriptor that
// is opened afterwards is known: the lowest that is free.
//
// Standard input is opened anew: that of the spawner is shared by all its sandboxes, and
// with it flags that one can set and another read.
func closeDescriptors(p *program) {
	p.call(unix.SYS_UMASK, num(0o077))
	p.call(unix.SYS_CLOSE_RANGE, num(lowestFD), num(^uint32(0)), num(0))
	p.call(unix.SYS_CLOSE, num(0))
	p.call(unix.SYS_OPENAT, num(unix.AT_FDCWD), p.text(os.DevNull), num(unix.O_RDONLY), num(0))
}

// newSession leaves the process group of the parent.
func newSession(p *program) { p.call(unix.SYS_SETSID) }

// sandboxNice is the niceness of sandboxes, so that deciding and recording come first.
const sandboxNice = 10

// yield makes the kernel prefer all other processes: for processor time, and when it has
// to kill one for memory. It disables huge pages, which a sandbox could fill with a
// single byte each.
func (s *sandboxSpec) yield(p *program) {
	nice := sandboxNice
	if now, err := unix.Getpriority(unix.PRIO_PROCESS, 0); err == nil {
		nice = max(nice, 20-now) // the call returns 20 minus the niceness, which can only be raised
	}
	p.call(unix.SYS_SETPRIORITY, num(unix.PRIO_PROCESS), num(0), num(nice))
	p.call(unix.SYS_PRCTL, num(unix.PR_SET_THP_DISABLE), num(1), num(0), num(0), num(0))
	if s.Layers&layerDescriptors == 0 {
		return // no number is known
	}
	first := []byte("1000")
	p.call(unix.SYS_OPENAT, num(unix.AT_FDCWD), p.text("/proc/self/oom_score_adj"), num(unix.O_WRONLY|unix.O_CLOEXEC), num(0))
	p.call(unix.SYS_WRITE, num(lowestFD), p.bytes(first), num(len(first)))
	p.call(unix.SYS_CLOSE, num(lowestFD))
}

func forbidNewPrivileges(p *program) {
	p.call(unix.SYS_PRCTL, num(unix.PR_SET_NO_NEW_PRIVS), num(1), num(0), num(0), num(0))
}

// dieWithParent has to come after setresuid, which clears it. An earlier death of the parent shows
// as the end of the feed.
func dieWithParent(p *program) {
	p.call(unix.SYS_PRCTL, num(unix.PR_SET_PDEATHSIG), num(int(unix.SIGKILL)), num(0), num(0), num(0))
}

// environment is all of the sandbox's environment.
func (s *sandboxSpec) environment() []string {
	if s.Layers&layerEnvironment == 0 {
		return os.Environ()
	}
	scratch := s.pathInside(s.Scratch)
	return []string{
		"HOME=" + scratch,
		"TMPDIR=" + scratch,
		"PATH=/nonexistent",
		"LANG=C.UTF-8",
		"TZ=UTC",
		// A malloc arena per thread reserves 64 MiB of the address space limit.
		"MALLOC_ARENA_MAX=1",
	}
}

// execute becomes Python.
func (s *sandboxSpec) execute(p *program) {
	p.execute(s.Image.command(s.pathInside(""), s.Preload), s.environment())
}
