package sandbox

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"
)

// initName is argv[0] of a process that is to become a box. A person can pass
// it too; all they get is a box around themselves.
const initName = "writ-sandbox-init"

// Descriptors of a box besides the standard three.
const (
	feedFD   = 3 // script and input, read by boot.py
	reportFD = 4 // errors of init, then ready and the traceback from boot.py
)

// setupExit is the exit status of a box that could not be built.
const setupExit = 125

// How the box changes its root directory.
const (
	rootPivot  = "pivot"  // own mount namespace: the runtime becomes /, scratch is a tmpfs
	rootChroot = "chroot" // the runtime becomes /
	rootKeep   = "keep"   // paths stay those of the host
)

// boxSpec is what the parent tells init, as JSON in argv[1]. It holds nothing
// secret: it can be read in /proc until init becomes Python.
type boxSpec struct {
	Runtime  string   // host path of the runtime directory
	Image    image    // what to execute in it
	Root     string   // rootPivot, rootChroot or rootKeep
	Scratch  string   // scratch directory below Runtime, relative; the tmpfs mount point if rootPivot
	ID       int      // uid and gid to become, as seen inside; -1 keeps them
	OwnUser  bool     // no process outside has the box's uid, so RLIMIT_NPROC counts its threads only
	Limits   Limits   // normalized
	Room     int64    // bytes of scratch, the input included
	Preload  []string // modules imported before the script arrives
	Landlock int      // lowest Landlock ABI that this driver accepts
}

// inBox is the path that a file of the runtime has once the box is entered.
func (s *boxSpec) inBox(rel string) string {
	if s.Root == rootKeep {
		return filepath.Join(s.Runtime, rel)
	}
	return filepath.Join("/", rel)
}

// Init turns the process into a sandbox box and does not return if it was
// started as one by this package; otherwise it does nothing. Call it first
// thing in main, and in TestMain of every package that opens a Sandbox.
func Init() {
	if len(os.Args) != 2 || os.Args[0] != initName {
		return
	}
	// Credentials, Landlock and seccomp belong to a thread; execve at the end
	// makes this thread the whole process.
	runtime.LockOSThread()
	err := enter([]byte(os.Args[1]))
	fmt.Fprintf(os.NewFile(reportFD, "report"), "%v", err)
	os.Exit(setupExit)
}

// enter builds the box around the calling thread and executes Python. It
// returns only on failure. The order matters: each step still has the rights
// that the steps before it needed, and none that a later one takes away.
func enter(raw []byte) error {
	var s boxSpec
	if err := json.Unmarshal(raw, &s); err != nil {
		return fmt.Errorf("box spec: %w", err)
	}
	unix.Umask(0o077)
	steps := []struct {
		name string
		do   func(*boxSpec) error
	}{
		{"session", newSession},
		{"root", changeRoot},
		{"no_new_privs", forbidNewPrivileges},
		{"landlock", restrictFiles},
		{"ids", becomeUser},
		{"parent death signal", dieWithParent},
		{"rlimits", limitResources},
		{"descriptors", closeDescriptors},
		{"capabilities", dropCapabilities},
	}
	for _, step := range steps {
		if err := step.do(&s); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	return become(&s)
}

// newSession leaves the terminal and process group of the parent.
func newSession(*boxSpec) error {
	// EPERM: already a leader, which is the state asked for.
	if _, err := unix.Setsid(); err != nil && err != unix.EPERM {
		return err
	}
	return nil
}

func forbidNewPrivileges(*boxSpec) error {
	return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
}

// dieWithParent re-arms what the parent asked for at clone: setresuid clears
// it. The parent's death in between is seen as EOF on the feed.
func dieWithParent(*boxSpec) error {
	return unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0)
}

// closeDescriptors marks what the parent leaked, so that execve closes it.
func closeDescriptors(*boxSpec) error {
	return unix.CloseRange(reportFD+1, ^uint(0)>>1, unix.CLOSE_RANGE_CLOEXEC)
}

// environment is all of the box's environment.
func (s *boxSpec) environment() []string {
	scratch := s.inBox(s.Scratch)
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
