//go:build amd64 || arm64

package sandbox

import (
	"context"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// python is an interpreter of the host that can be copied into a runtime.
type python struct {
	Executable string `json:"executable"` // real file: no shim, no symlink
	Version    string `json:"version"`    // 3.11.2
	Short      string `json:"short"`      // 3.11
	CacheTag   string `json:"cache_tag"`  // cpython-311
	Stdlib     string `json:"stdlib"`
	Dynload    string `json:"dynload"` // directory of extension modules; empty if all are built in
	LibDir     string `json:"libdir"`  // lib or lib64: where this build looks below its prefix
	Minor      int    `json:"minor"`
	Urandom    bool   `json:"-"` // reads /dev/urandom: it does not know getrandom
}

// minMinor is the oldest supported Python 3: compileall learned to rewrite
// path prefixes in 3.9.
const minMinor = 9

const describePython = `
import json, os, sys
v = sys.version_info
print(json.dumps({
    "executable": os.path.realpath(sys.executable),
    "version": "%d.%d.%d" % v[:3], "short": "%d.%d" % v[:2], "minor": v[1],
    "cache_tag": sys.implementation.cache_tag, "stdlib": os.path.dirname(os.path.realpath(os.__file__)),
    "dynload": next((p for p in sys.path if p.endswith("lib-dynload") and os.path.isdir(p)), ""),
    "libdir": getattr(sys, "platlibdir", "lib"),
} if v[0] == 3 and sys.implementation.name == "cpython" else {}))
`

// findPython is the first usable interpreter: path if given, else the python3 of each
// directory in PATH. A shim of a version manager is slower than a whole run, so it is
// executed only once, to find the interpreter behind it.
func findPython(ctx context.Context, path string) (python, error) {
	candidates := []string{path}
	if path == "" {
		candidates = nil
		for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
			candidates = append(candidates, filepath.Join(dir, "python3"))
		}
	}
	var refused []error
	for _, c := range candidates {
		if _, err := os.Stat(c); path == "" && err != nil { //nolint:gosec // G703: the operator's PATH
			continue
		}
		p, err := askPython(ctx, c)
		if err == nil {
			return p, nil
		}
		refused = append(refused, fmt.Errorf("%s: %w", c, err))
	}
	if len(refused) == 0 {
		return python{}, fmt.Errorf("no python3 in PATH: install CPython 3.%d or later with its standard library (package python3), or build this program with -tags embedpython", minMinor)
	}
	return python{}, fmt.Errorf("no usable python3, install CPython 3.%d or later with its standard library: %w", minMinor, errors.Join(refused...))
}

func askPython(ctx context.Context, path string) (python, error) {
	out, err := exec.CommandContext(ctx, path, "-I", "-S", "-c", describePython).Output() //nolint:gosec // G702: the operator's PATH
	if err != nil {
		return python{}, err
	}
	var p python
	if err := json.Unmarshal(out, &p); err != nil {
		return python{}, fmt.Errorf("describe itself: %w", err)
	}
	switch {
	case p.Executable == "":
		return python{}, errors.New("not CPython 3")
	case p.Minor < minMinor:
		return python{}, fmt.Errorf("version %s is too old", p.Version)
	}
	return p, nil
}

// loaderOf is the ELF interpreter of a program, empty if it is static.
func loaderOf(path string) (string, error) {
	f, err := elf.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			b, err := io.ReadAll(p.Open())
			return strings.TrimRight(string(b), "\x00"), err
		}
	}
	return "", nil
}

// librariesOf are the files that loader would map for the program or shared
// object at path. An error means that one is missing, so it cannot be used.
func librariesOf(ctx context.Context, loader, path string) ([]string, error) {
	out, err := exec.CommandContext(ctx, loader, "--list", path).Output() //nolint:gosec // G204: found in PATH
	if err != nil {
		return nil, err
	}
	var files []string
	for line := range strings.Lines(string(out)) {
		name, rest, ok := strings.Cut(strings.TrimSpace(line), " => ")
		if !ok {
			continue // the vdso, or the loader itself
		}
		file, _, _ := strings.Cut(rest, " (")
		if !filepath.IsAbs(file) {
			return nil, fmt.Errorf("library %s: %s", name, file)
		}
		files = append(files, file)
	}
	return files, nil
}
