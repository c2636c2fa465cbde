//go:build linux && (amd64 || arm64)

package sandbox_test

import (
	"os"
	"testing"

	"aob.dev/writ/executors/sandbox"
	"aob.dev/writ/internal/testing/escape"
)

func init() { sandbox.Prelude = escape.Prelude }

// minProbes guards against a folder that silently became empty.
const minProbes = 60

func probes(t *testing.T) []escape.Probe {
	t.Helper()
	list, err := escape.Probes()
	if err != nil {
		t.Fatal(err)
	}
	if len(list) < minProbes {
		t.Fatalf("%d probes, want at least %d", len(list), minProbes)
	}
	return list
}

func bait(t *testing.T) *escape.Bait {
	t.Helper()
	b, err := escape.LayBait(os.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Remove(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func TestEscapes(t *testing.T) {
	list, b := probes(t), bait(t)
	for _, name := range sandbox.Available(t) {
		t.Run(name, func(t *testing.T) {
			s := sandbox.OpenFor(t, sandbox.Config{Driver: name, Workers: -1})
			for _, p := range list {
				t.Run(p.Name, func(t *testing.T) {
					t.Parallel()
					f, err := p.Try(t.Context(), s, b)
					if weak, ok := s.Native().(sandbox.Weak); ok && err == nil && f.Holds() && p.Name != "kernel-wx-memory" {
						f, err = p.Try(t.Context(), weak, b)
					}
					if err != nil {
						t.Fatal(err)
					}
					if !f.Holds() {
						t.Errorf("%s: %s", f.Verdict, f.Detail)
					}
				})
			}
		})
	}
}

// TestEveryGroupIsProbed: none of the four is a token.
func TestEveryGroupIsProbed(t *testing.T) {
	count := map[string]int{}
	for _, p := range probes(t) {
		count[p.Group]++
	}
	for _, g := range escape.Groups() {
		if count[g] < 8 {
			t.Errorf("%d probes of %s", count[g], g)
		}
	}
}

// TestEveryLayerCarriesWeight takes layers away and lets a probe through: so each
// of them is what stops something, and each of these probes would notice.
//
// Where two layers stop the same, one is taken in both runs and the other in the
// second alone.
func TestEveryLayerCarriesWeight(t *testing.T) {
	type weak = sandbox.Weakening
	tests := []struct {
		layer, driver, probe string
		before, after        weak
	}{
		{"seccomp", sandbox.Namespaces, "kernel-fork", weak{}, weak{Seccomp: true}},
		{"seccomp", sandbox.Landlock, "network-datagram", weak{}, weak{Seccomp: true}},
		{"seccomp", sandbox.Landlock, "network-path-socket", weak{}, weak{Seccomp: true}},
		{"seccomp", sandbox.Landlock, "kernel-wx-memory", weak{}, weak{Code: true}},
		{"landlock", sandbox.Landlock, "files-host", weak{}, weak{Landlock: true}},
		{"landlock", sandbox.Landlock, "resources-inodes", weak{User: true}, weak{User: true, Landlock: true}},
		{"root", sandbox.Namespaces, "files-host", weak{Landlock: true}, weak{Landlock: true, Root: true}},
		{"root", sandbox.Namespaces, "files-stat", weak{}, weak{Root: true}},
		{"namespaces", sandbox.Namespaces, "network-datagram", weak{Seccomp: true}, weak{Seccomp: true, Namespaces: true}},
		{"namespaces", sandbox.Namespaces, "network-connect", weak{Seccomp: true, Landlock: true}, weak{Seccomp: true, Landlock: true, Namespaces: true}},
		{"user", sandbox.Namespaces, "resources-threads", weak{}, weak{User: true}},
		{"capabilities", sandbox.Namespaces, "kernel-bounding-set", weak{}, weak{Capabilities: true}},
		{"capabilities", sandbox.Namespaces, "files-mode", weak{User: true}, weak{User: true, Capabilities: true}},
		{"rlimits", sandbox.Namespaces, "resources-memory", weak{Groups: true}, weak{Groups: true, Rlimits: true}},
		{"rlimits", sandbox.Landlock, "resources-descriptors", weak{}, weak{Rlimits: true}},
		{"descriptors", sandbox.Namespaces, "files-descriptors", weak{Landlock: true}, weak{Landlock: true, Descriptors: true}},
		{"session", sandbox.Namespaces, "kernel-session", weak{}, weak{Session: true}},
		{"environment", sandbox.Landlock, "files-environment", weak{}, weak{Environment: true}},
		{"parent", sandbox.Namespaces, "resources-output", weak{}, weak{Parent: true}},
		{"scratch", sandbox.Namespaces, "resources-disk", weak{}, weak{Room: 1 << 40, Rlimits: true}},
	}
	byName := map[string]escape.Probe{}
	for _, p := range probes(t) {
		byName[p.Name] = p
	}
	b := bait(t)
	available := map[string]*sandbox.Sandbox{}
	for _, name := range sandbox.Available(t) {
		available[name] = sandbox.OpenFor(t, sandbox.Config{Driver: name, Workers: -1})
	}
	for _, tt := range tests {
		t.Run(tt.layer+"/"+tt.driver+"/"+tt.probe, func(t *testing.T) {
			s := available[tt.driver]
			if s == nil || tt.layer == "user" && os.Geteuid() != 0 {
				t.Logf("%s of %s is not on this machine, or not for this user", tt.layer, tt.driver)
				return
			}
			p, ok := byName[tt.probe]
			if !ok {
				t.Fatal("no such probe")
			}
			for _, run := range []struct {
				weakening sandbox.Weakening
				through   bool
			}{{tt.before, false}, {tt.after, true}} {
				if _, ok := s.Native().(sandbox.Weak); ok && tt.probe != "kernel-wx-memory" {
					run.weakening.Code = true
				}
				f, err := p.Try(t.Context(), s.Weaken(run.weakening), b)
				if err != nil {
					t.Fatal(err)
				}
				if (f.Verdict == escape.Escaped) != run.through {
					t.Errorf("%+v: %s (%s): %s", run.weakening, f.Verdict, f.Outcome, f.Detail)
				}
			}
		})
	}
}

// TestProbesNotice runs, without any sandbox, probes of the layers that cannot be
// taken from one. None of them does harm.
func TestProbesNotice(t *testing.T) {
	b := bait(t)
	for _, p := range probes(t) {
		switch p.Name {
		case "files-environment", "files-descriptors", "files-host", "files-list", "files-stat", "network-connect", "network-listen", "network-abstract":
			if f, err := p.Try(t.Context(), sandbox.Bare(t), b); err != nil || f.Verdict != escape.Escaped {
				t.Errorf("%s: %+v %v", p.Name, f, err)
			}
		}
	}
}
