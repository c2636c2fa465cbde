//go:build linux && (amd64 || arm64)

package sandbox

import (
	"context"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// For the tests outside, which need package escape.

// OpenFor is a Sandbox that ends with the test.
func OpenFor(t testing.TB, cfg Config) *Sandbox { t.Helper(); return open(t, cfg) }

// Available are the drivers whose canary holds here.
func Available(t *testing.T) []string { t.Helper(); return available(t) }

// Weakening takes layers from a driver.
type Weakening struct {
	Root, Namespaces                               bool
	Landlock, Seccomp, User, Capabilities, Rlimits bool
	Room                                           int64 // of the scratch
}

// Weak runs jobs under a driver from which layers were taken.
type Weak struct {
	driver  *linuxDriver
	profile func(Job) (Profile, error)
	room    int64
}

// Weaken takes layers from the driver in use.
func (s *Sandbox) Weaken(w Weakening) Weak {
	d := *s.driver.(*linuxDriver)
	for l, gone := range map[layers]bool{
		layerLandlock: w.Landlock, layerSeccomp: w.Seccomp, layerUser: w.User, layerCapabilities: w.Capabilities, layerRlimits: w.Rlimits,
	} {
		if gone {
			d.layers &^= l
		}
	}
	if w.Root {
		d.root = rootKeep
	}
	if w.Namespaces {
		d.clone &= unix.CLONE_NEWNS | unix.CLONE_NEWUTS
	}
	return Weak{&d, s.profile, w.Room}
}

// Driver is the name of the whole driver.
func (w Weak) Driver() string { return w.driver.name }

// Run runs one job.
func (w Weak) Run(ctx context.Context, job Job) (Result, error) {
	p, err := w.profile(job)
	if err != nil {
		return Result{}, err
	}
	p.Room = max(p.Room, w.room)
	box, err := w.driver.Start(ctx, p)
	if err != nil {
		return Result{}, err
	}
	return box.Run(ctx, job)
}

// bareRunner runs scripts in Python as it is.
type bareRunner struct{ t *testing.T }

// Bare is no sandbox at all. It leaks what the process has leaked.
func Bare(t *testing.T) interface {
	Driver() string
	Run(context.Context, Job) (Result, error)
} {
	t.Helper()
	return bareRunner{t}
}

func (bareRunner) Driver() string { return "none" }

func (r bareRunner) Run(ctx context.Context, job Job) (Result, error) {
	p, err := findPython(ctx, "")
	if err != nil {
		return Result{}, err
	}
	out, err := exec.CommandContext(ctx, p.Executable, "-I", "-S", "-E", "-B", "-c", job.Script).Output()
	return Result{Outcome: OK, Output: out}, err
}

// Scratch is the directory of the sessions.
func (s *Sandbox) Scratch() string { return filepath.Join(s.host.runtime.path, taskDir) }
