//go:build amd64 || arm64

package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"

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

// changeRoot leaves the host's file tree as far as the driver can, and enters
// the scratch directory.
func (s *sandboxSpec) changeRoot(p *program) {
	switch s.Root {
	case rootPivot:
		s.pivot(p)
	case rootKeep:
	default:
		p.fail(fmt.Errorf("unknown root %q", s.Root))
	}
	p.step = "enter scratch"
	p.call(unix.SYS_CHDIR, p.text(s.pathInside(s.Scratch)))
}

// pivot makes the runtime directory the only mount of the namespace, read-only,
// with a bounded tmpfs as scratch. No /proc, /dev or /sys is mounted.
func (s *sandboxSpec) pivot(p *program) {
	id := max(s.ID, 0)
	runtime, tmpfs := p.text(s.Runtime), p.text("tmpfs")
	p.step = "private mounts"
	p.call(unix.SYS_MOUNT, num(0), p.text("/"), num(0), num(unix.MS_PRIVATE|unix.MS_REC), num(0))
	p.step = "bind runtime"
	// Without MS_REC: a mount someone made below the runtime is not wanted.
	p.call(unix.SYS_MOUNT, runtime, runtime, num(0), num(unix.MS_BIND), num(0))
	p.step = "read-only runtime"
	p.attributes(runtime, 0, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
	p.step = "mount scratch"
	options := fmt.Sprintf("size=%d,nr_inodes=%d,mode=0700,uid=%d,gid=%d", s.Room, scratchFiles, id, id)
	scratch := p.text(filepath.Join(s.Runtime, s.Scratch))
	p.call(unix.SYS_MOUNT, tmpfs, scratch, tmpfs, num(unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC), p.text(options))
	if s.Image.Urandom {
		s.mountRandomDevice(p)
	}
	p.step = "enter runtime"
	p.call(unix.SYS_CHDIR, runtime)
	p.pivot("box")
}

// mountRandomDevice gives the sandbox the one device that its Python cannot do
// without.
func (s *sandboxSpec) mountRandomDevice(p *program) {
	p.step = "mount /" + randomDevice
	place := p.text(filepath.Join(s.Runtime, randomDevice))
	p.call(unix.SYS_MOUNT, p.text("/"+randomDevice), place, num(0), num(unix.MS_BIND), num(0))
	p.attributes(place, 0, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC)
}

// dropBounding empties the set that bounds the capabilities gained by execve. A process without
// the right to do that has no capabilities to bound either.
func (s *sandboxSpec) dropBounding(p *program) {
	if !s.OwnRoot && !holdsCapability(unix.CAP_SETPCAP) {
		return
	}
	for c := range capabilities() {
		p.call(unix.SYS_PRCTL, num(unix.PR_CAPBSET_DROP), num(c), num(0), num(0), num(0))
	}
}

// capabilities is how many this kernel has.
var capabilities = sync.OnceValue(func() uintptr {
	for c := uintptr(0); ; c++ {
		// EINVAL: past the last one.
		if err := unix.Prctl(unix.PR_CAPBSET_READ, c, 0, 0, 0); err != nil {
			return c
		}
	}
})

// dropCapabilities empties the other four sets.
func dropCapabilities(p *program) {
	p.call(unix.SYS_PRCTL, num(unix.PR_CAP_AMBIENT), num(unix.PR_CAP_AMBIENT_CLEAR_ALL), num(0), num(0), num(0))
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	p.call(unix.SYS_CAPSET, value(p, &header), value(p, &none))
}

// becomeUser takes the sandbox's own uid and gid and gives up all groups. Leaving
// uid 0 for good empties the permitted capabilities.
func (s *sandboxSpec) becomeUser(p *program) {
	if s.ID < 0 {
		return
	}
	id := num(s.ID)
	p.call(unix.SYS_SETGROUPS, num(0), num(0))
	p.call(unix.SYS_SETRESGID, id, id, id)
	p.call(unix.SYS_SETRESUID, id, id, id)
}

// holdsCapability reports whether this process has c in effect.
func holdsCapability(c uint) bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if err := unix.Capget(&header, &sets[0]); err != nil {
		return false
	}
	return sets[c/32].Effective&(1<<(c%32)) != 0
}

// limitResources bounds the process, which is always one: fork is refused. Soft
// and hard CPU limit are equal because the first process of a pid namespace
// ignores SIGXCPU, which the soft limit sends, but not SIGKILL, which the hard
// one sends.
func (s *sandboxSpec) limitResources(p *program) {
	limits := []struct {
		resource int
		most     uint64
	}{
		{unix.RLIMIT_FSIZE, uint64(s.Room)},          //nolint:gosec // G115: within range
		{unix.RLIMIT_NOFILE, uint64(s.Limits.Files)}, //nolint:gosec // G115: within range
		// 1, not 0: a core_pattern that is a pipe ignores 0 but obeys 1.
		{unix.RLIMIT_CORE, 1},
		{unix.RLIMIT_STACK, 8 << 20},
		{unix.RLIMIT_MEMLOCK, 0},
		{unix.RLIMIT_MSGQUEUE, 0},
		{unix.RLIMIT_SIGPENDING, 64},
		{unix.RLIMIT_CPU, s.Limits.cpuSeconds()},
		{unix.RLIMIT_AS, uint64(s.Limits.Memory)},     //nolint:gosec // G115: within range
		{unix.RLIMIT_NPROC, uint64(s.Limits.Threads)}, //nolint:gosec // G115: within range
	}
	for _, l := range limits {
		if l.resource == unix.RLIMIT_NPROC && !s.OwnUser {
			continue // would count this user's other processes
		}
		// The sandbox cannot raise a hard limit that is lower already.
		var now unix.Rlimit
		if err := unix.Prlimit(0, l.resource, nil, &now); err == nil {
			l.most = min(l.most, now.Max)
		}
		p.limit(l.resource, l.most)
	}
}
