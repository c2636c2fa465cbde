//go:build linux && (amd64 || arm64)

package sandbox

import (
	"context"
	"os/exec"
	"path/filepath"
	"slices"
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
	Code                                           bool // which seccomp keeps new code out with
	Descriptors, Session, Environment              bool
	Groups                                         bool  // control groups
	Parent                                         bool  // who counts output
	Room                                           int64 // of the scratch
}

// Weak runs jobs under a driver from which layers were taken.
type Weak struct {
	driver  *linuxDriver
	profile func(Job) (Profile, error)
	room    int64
	patient bool
}

// Weaken takes layers from the driver in use.
func (s *Sandbox) Weaken(w Weakening) Weak {
	d := *s.driver
	for l, gone := range map[layers]bool{
		layerLandlock: w.Landlock, layerSeccomp: w.Seccomp, layerCode: w.Code, layerUser: w.User, layerCapabilities: w.Capabilities, layerRlimits: w.Rlimits,
		layerDescriptors: w.Descriptors, layerSession: w.Session, layerEnvironment: w.Environment,
	} {
		if gone {
			d.layers &^= l
		}
	}
	if w.Groups {
		h := *d.host
		h.groups = nil
		d.host = &h
	}
	if w.Root {
		d.root = rootKeep
	}
	if w.Namespaces {
		d.clone &= unix.CLONE_NEWNS | unix.CLONE_NEWUTS
	}
	return Weak{&d, s.profile, w.Room, w.Parent}
}

// Native is the sandbox with as much of the sandbox as the ctypes of its Python, by
// which tests make system calls, can be imported in. The embedded one writes
// machine code for that.
func (s *Sandbox) Native() Runner {
	if s.host.runtime.image.Urandom {
		return s.Weaken(Weakening{Code: true})
	}
	return s
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
	if w.patient {
		p.Limits.Output = 64 << 20
	}
	inst, err := w.driver.Start(p)
	if err != nil {
		return Result{}, err
	}
	return inst.Run(ctx, job)
}

// bareRunner runs scripts in Python as it is.
type bareRunner struct{ argv []string }

// Bare is no sandbox at all. It leaks what the process has leaked.
func Bare(t *testing.T) Runner {
	t.Helper()
	p, err := Prepare(t.Context(), config(t, Config{}))
	if err != nil {
		t.Fatal(err)
	}
	return bareRunner{p.Bare}
}

func (bareRunner) Driver() string { return "none" }

func (r bareRunner) Run(ctx context.Context, job Job) (Result, error) {
	argv := slices.Concat(r.argv, []string{"-I", "-S", "-E", "-B", "-c", job.Script})
	out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).Output()
	return Result{Outcome: OK, Output: out}, err
}

// Scratch is the directory of the sessions.
func (s *Sandbox) Scratch() string { return filepath.Join(s.host.runtime.path, taskDir) }
