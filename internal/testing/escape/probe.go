// Package escape tries to get out of a sandbox. Each probe is a script that attempts
// something forbidden and names the layer that must stop it. To try something else, add
// a file to probes.
//
// A probe is Python with "# key: value" lines at its top:
//
//	layer   the layers of which each alone should block it, most direct first
//	expect  the outcome of a run that was stopped; default ok: the script goes
//	        on to its end and prints what was blocked
//	open    drivers under which it may get through, as docs/sandbox.md describes
//	wall    limit of the run, as is cpu
//
// Its name begins with its group.
package escape

import (
	"embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"aob.dev/writ/executors/sandbox"
)

//go:embed probes
var files embed.FS

// Prelude is the Python code that stands in front of each probe.
//
//go:embed prelude.py
var Prelude string

// Groups of probes, by their target.
func Groups() []string { return []string{"files", "kernel", "network", "resources"} }

// Layers that a probe can name.
//
//	root          pivot_root into the read-only runtime
//	namespaces    of processes, network, IPC and host name
//	landlock      what may be opened of the files that are there
//	seccomp       the allowlist of system calls
//	user          an own uid
//	capabilities  none
//	rlimits       of the one process
//	scratch       a bounded, non-executable file system of its own
//	descriptors   none but the sandbox's own
//	environment   fixed
//	session       an own one, without a terminal
//	parent        who counts output and time, and kills
func Layers() []string {
	return []string{
		"root", "namespaces", "landlock", "seccomp", "user", "capabilities", "rlimits", "scratch",
		"descriptors", "environment", "session", "parent",
	}
}

// Probe is one script and its expected result.
type Probe struct {
	Name   string
	Group  string
	Layers []string
	Expect sandbox.Outcome
	Open   []string // drivers that do not cover it
	Limits sandbox.Limits
	Script string // without the prelude
}

// defaultWall is the limit of probes that set none: enough on a busy machine.
const defaultWall = 20 * time.Second

// Probes are all, by name.
func Probes() ([]Probe, error) {
	entries, err := files.ReadDir("probes")
	if err != nil {
		return nil, err
	}
	var list []Probe
	for _, e := range entries {
		raw, err := files.ReadFile("probes/" + e.Name())
		if err != nil {
			return nil, err
		}
		p, err := Parse(strings.TrimSuffix(e.Name(), ".py"), string(raw))
		if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	return list, nil
}

// Parse reads a probe.
func Parse(name, script string) (Probe, error) {
	p := Probe{Name: name, Expect: sandbox.OK, Script: script, Limits: sandbox.Limits{Wall: defaultWall}}
	p.Group, _, _ = strings.Cut(name, "-")
	for line := range strings.Lines(script) {
		key, value, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "# "), ": ")
		if !ok || !strings.HasPrefix(line, "# ") || strings.Contains(key, " ") {
			break
		}
		if err := set(&p, key, value); err != nil {
			return Probe{}, fmt.Errorf("probe %s: %s: %w", name, key, err)
		}
	}
	switch {
	case !slices.Contains(Groups(), p.Group):
		return Probe{}, fmt.Errorf("probe %s: no group %q", name, p.Group)
	case len(p.Layers) == 0:
		return Probe{}, fmt.Errorf("probe %s does not say which layer must block it", name)
	}
	return p, nil
}

func set(p *Probe, key, value string) (err error) {
	switch key {
	case "layer":
		p.Layers, err = subset(value, Layers())
	case "expect":
		p.Expect = sandbox.Outcome(value)
	case "open":
		p.Open, err = subset(value, sandbox.DriverNames())
	case "wall":
		p.Limits.Wall, err = time.ParseDuration(value)
	case "cpu":
		p.Limits.CPU, err = time.ParseDuration(value)
	default:
		err = errors.New("unknown key")
	}
	return err
}

// subset are the names in a list separated by commas, if all are known.
func subset(list string, known []string) ([]string, error) {
	words := strings.Split(list, ", ")
	for _, w := range words {
		if !slices.Contains(known, w) {
			return nil, fmt.Errorf("unknown %q", w)
		}
	}
	return words, nil
}

// Verdict on one probe under one driver.
type Verdict string

// The closed set of verdicts.
const (
	Blocked Verdict = "blocked"
	Known   Verdict = "open"    // got through where it is known to
	Escaped Verdict = "ESCAPED" // got through
	Broken  Verdict = "broken"  // ended otherwise than expected, so that it proves nothing
)

// Finding is the result of one probe under one driver.
type Finding struct {
	Probe   string   `json:"probe"`
	Group   string   `json:"group"`
	Layers  []string `json:"layers"`
	Driver  string   `json:"driver"`
	Verdict Verdict  `json:"verdict"`
	Outcome string   `json:"outcome"` // of the run
	Detail  string   `json:"detail"`  // if it was not blocked; under control of the probe
}

// Holds reports whether the finding is as promised.
func (f Finding) Holds() bool { return f.Verdict == Blocked || f.Verdict == Known }
