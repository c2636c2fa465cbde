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
	rootPivot  = "pivot"  // own mount namespace: the runtime becomes /, scratch is a tmpfs
	rootChroot = "chroot" // the runtime becomes /
	rootKeep   = "keep"   // paths stay those of the host
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

// sandboxSpec is what a sandbox is made from.
type sandboxSpec struct {
	Runtime  string   // host path of the runtime directory
	Image    image    // what to execute in it
	Root     string   // rootPivot, rootChroot or rootKeep
	Layers   layers   // those it gets
	Scratch  string   // scratch directory below Runtime, relative; the tmpfs mount point if rootPivot
	ID       int      // uid and gid to become, as seen inside; -1 keeps them
	OwnUser  bool     // no process outside has the sandbox's uid, so RLIMIT_NPROC counts its threads only
	OwnRoot  bool     // starts with all capabilities, in a user namespace
	OwnPIDs  bool     // in a pid namespace
	Limits   Limits   // normalized
	Room     int64    // bytes of scratch, the input included
	Preload  []string // modules imported before the script arrives
	Landlock int      // lowest Landlock ABI that this driver accepts
}

// pathInside is the path that a file of the runtime has once the sandbox is
// entered.
func (s *sandboxSpec) pathInside(rel string) string {
	if s.Root == rootKeep {
		return filepath.Join(s.Runtime, rel)
	}
	return filepath.Join("/", rel)
}

// compile writes the program of a sandbox. The order matters: each step still has
// the rights that the steps before it needed, and none that a later one takes
// away.
func (s *sandboxSpec) compile() (*program, error) {
	p := &program{}
	steps := []struct {
		name  string
		layer layers // 0: in every sandbox
		write func(*program, *sandboxSpec) error
	}{
		{"descriptors", layerDescriptors, closeDescriptors},
		{"session", layerSession, newSession},
		{"yield", 0, yield},
		{"root", 0, changeRoot},
		{"no_new_privs", 0, forbidNewPrivileges},
		{"landlock", layerLandlock, restrictFiles},
		{"bounding capabilities", layerCapabilities, dropBounding},
		{"ids", layerUser, becomeUser},
		{"parent death signal", 0, dieWithParent},
		{"rlimits", layerRlimits, limitResources},
		{"capabilities", layerCapabilities, dropCapabilities},
		{"seccomp", layerSeccomp, installFilter},
		{"execute the interpreter", 0, execute},
	}
	for _, step := range steps {
		if step.layer != 0 && s.Layers&step.layer == 0 {
			continue
		}
		p.step = step.name
		if err := step.write(p, s); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// lowestFD is what a file opened in a sandbox becomes.
const lowestFD = spawn.ReportFD + 1

// closeDescriptors closes all but those of the sandbox. What is opened afterwards
// is known by number: the lowest that is free.
//
// Standard input is opened anew: what the spawner has is shared by all its
// sandboxes, and with it the flags that one may set and another read.
func closeDescriptors(p *program, _ *sandboxSpec) error {
	null, err := p.text(os.DevNull)
	if err != nil {
		return err
	}
	p.call(unix.SYS_UMASK, num(0o077))
	p.call(unix.SYS_CLOSE_RANGE, num(lowestFD), num(^uint32(0)), num(0))
	p.call(unix.SYS_CLOSE, num(0))
	p.call(unix.SYS_OPENAT, num(unix.AT_FDCWD), null, num(unix.O_RDONLY), num(0))
	return nil
}

// newSession leaves the process group of the parent.
func newSession(p *program, _ *sandboxSpec) error {
	p.call(unix.SYS_SETSID)
	return nil
}

// sandboxNice is the niceness of sandboxes, so that what decides and records
// comes first.
const sandboxNice = 10

// yield has the kernel prefer everybody else: for processor time, and as who stays
// when there is no memory left. Huge pages, which a sandbox could have for a single
// byte in each, it gets none.
func yield(p *program, s *sandboxSpec) error {
	nice := sandboxNice
	if now, err := unix.Getpriority(unix.PRIO_PROCESS, 0); err == nil {
		nice = max(nice, 20-now) // as the kernel tells it; it can be raised only
	}
	p.call(unix.SYS_SETPRIORITY, num(unix.PRIO_PROCESS), num(0), num(nice))
	p.call(unix.SYS_PRCTL, num(unix.PR_SET_THP_DISABLE), num(1), num(0), num(0), num(0))
	if s.Layers&layerDescriptors == 0 {
		return nil // no number is known
	}
	file, err := p.text("/proc/self/oom_score_adj")
	if err != nil {
		return err
	}
	first := []byte("1000")
	p.call(unix.SYS_OPENAT, num(unix.AT_FDCWD), file, num(unix.O_WRONLY|unix.O_CLOEXEC), num(0))
	p.call(unix.SYS_WRITE, num(lowestFD), p.bytes(first), num(len(first)))
	p.call(unix.SYS_CLOSE, num(lowestFD))
	return nil
}

func forbidNewPrivileges(p *program, _ *sandboxSpec) error {
	p.call(unix.SYS_PRCTL, num(unix.PR_SET_NO_NEW_PRIVS), num(1), num(0), num(0), num(0))
	return nil
}

// dieWithParent has to come after setresuid, which clears it. The parent's death
// before is seen as the end of the feed.
func dieWithParent(p *program, _ *sandboxSpec) error {
	p.call(unix.SYS_PRCTL, num(unix.PR_SET_PDEATHSIG), num(int(unix.SIGKILL)), num(0), num(0), num(0))
	return nil
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
func execute(p *program, s *sandboxSpec) error {
	argv := s.Image.command(s.pathInside(""), s.Preload)
	path, err := p.text(argv[0])
	if err != nil {
		return err
	}
	args, err := p.texts(argv)
	if err != nil {
		return err
	}
	env, err := p.texts(s.environment())
	if err != nil {
		return err
	}
	p.call(unix.SYS_EXECVE, path, args, env)
	return nil
}
