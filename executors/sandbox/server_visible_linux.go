//go:build amd64 || arm64

package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// bind is a path of the machine that is shown at a place inside.
type bind struct {
	source string // without symlinks
	target string
	file   bool
	write  bool
}

// visible is the part of the machine that a server sees.
type visible struct {
	binds     []bind
	masks     []bind // places inside that must be empty
	argv      []string
	invisible []string
	hidden    []string // without symlinks
}

// Directories of the system, each of which may be missing, and the files of /etc that a program
// needs to resolve names, check certificates and load libraries.
var (
	systemDirs  = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/var/lib/ca-certificates"}
	systemFiles = []string{
		"/etc/ssl", "/etc/pki", "/etc/ca-certificates", "/etc/ca-certificates.conf", "/etc/resolv.conf", "/etc/hosts",
		"/etc/host.conf", "/etc/gai.conf", "/etc/nsswitch.conf", "/etc/services", "/etc/protocols", "/etc/localtime",
		"/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/mime.types", "/etc/fonts",
	}
	systemDevices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}
)

// errHidden refuses to show files that no server may see.
var errHidden = errors.New("holds keys or records of writ, which no skill server may see")

// see finds the files that the server needs. It changes nothing.
func (s *Server) see() (*visible, error) {
	v := &visible{argv: slices.Clone(s.Command)}
	if err := v.hide(s.Hidden); err != nil {
		return nil, err
	}
	for _, path := range slices.Concat(systemDirs, systemFiles) {
		v.show(path, false)
	}
	for _, f := range s.Files {
		if err := v.declare(f); err != nil {
			return nil, err
		}
	}
	if err := v.command(SearchPath(s.Env, s.Files)); err != nil {
		return nil, err
	}
	slices.SortStableFunc(v.binds, func(a, b bind) int { return strings.Compare(a.target, b.target) })
	v.mask()
	v.look()
	return v, nil
}

// hide adds paths that are never shown. Paths that do not exist are skipped.
func (v *visible) hide(paths []string) error {
	for _, path := range paths {
		real, err := filepath.Abs(path)
		if err == nil {
			real, err = filepath.EvalSymlinks(real)
		}
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return err
		default:
			v.hidden = append(v.hidden, real)
		}
	}
	return nil
}

// declare shows a file that the operator has declared.
func (v *visible) declare(f ServerFile) error {
	if filepath.Clean(f.Path) == "/" {
		return errors.New("files=/: name what the skill server needs, not everything")
	}
	real, err := filepath.EvalSymlinks(f.Path)
	if err != nil {
		return fmt.Errorf("files: %w", err)
	}
	if v.isHidden(real) {
		return fmt.Errorf("files: %s %w", f.Path, errHidden)
	}
	v.show(f.Path, f.Write)
	return nil
}

// show makes a path visible at its own place; if that is an already visible symlink, its target. It
// does nothing where the path does not exist, is visible or is hidden.
func (v *visible) show(path string, write bool) {
	path = filepath.Clean(path)
	real, err := filepath.EvalSymlinks(path)
	if err != nil || v.isHidden(real) {
		return
	}
	info, err := os.Stat(real)
	if err != nil || !info.IsDir() && !info.Mode().IsRegular() {
		return // sockets and devices give more than files do
	}
	if there := v.at(path); there != "" && there != real {
		path = real
	}
	if !write && v.at(path) == real {
		return
	}
	for i, b := range v.binds {
		if b.target == path {
			v.binds[i].write = b.write || write
			return
		}
	}
	v.binds = append(v.binds, bind{source: real, target: path, file: !info.IsDir(), write: write})
}

// at is the entry of a visible directory at a place; empty: the place is in none.
func (v *visible) at(place string) string {
	for _, b := range v.binds {
		if in, ok := below(place, b.target); ok && !b.file {
			return filepath.Join(b.source, in)
		}
	}
	return ""
}

func (v *visible) isHidden(real string) bool {
	return slices.ContainsFunc(v.hidden, func(dir string) bool { _, in := below(real, dir); return in })
}

// mask hides hidden files below visible directories.
func (v *visible) mask() {
	for _, path := range v.hidden {
		info, err := os.Stat(path)
		if err != nil {
			continue // it was just removed
		}
		for _, b := range v.binds {
			if in, ok := below(path, b.source); ok && !b.file {
				v.masks = append(v.masks, bind{target: filepath.Join(b.target, in), file: !info.IsDir()})
			}
		}
	}
}

// look finds arguments of the command that are paths which the server cannot see: most
// likely they should be declared.
func (v *visible) look() {
	for _, word := range v.argv {
		real, err := filepath.EvalSymlinks(word)
		if err == nil && filepath.IsAbs(word) && !v.reaches(real) {
			v.invisible = append(v.invisible, word)
		}
	}
}

// reaches reports whether a path without symlinks is shown.
func (v *visible) reaches(real string) bool {
	return !v.isHidden(real) && slices.ContainsFunc(v.binds, func(b bind) bool { _, in := below(real, b.source); return in })
}

// below reports whether path is dir or in it; rel is its path below dir.
func below(path, dir string) (rel string, ok bool) {
	if path == dir {
		return ".", true
	}
	return strings.CutPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// command shows the program, and the files that its arguments name: a script, for example.
// Where the program needs more, such as an interpreter or modules outside of the system's
// directories, its Files say so. Paths become absolute, as the server has a working directory
// of its own.
func (v *visible) command(path string) error {
	if len(v.argv) == 0 {
		return errors.New("no command")
	}
	path, err := FindProgram(v.argv[0], path)
	if err != nil {
		return err
	}
	v.argv[0] = path
	for i, word := range v.argv {
		if strings.HasPrefix(word, "-") || !strings.ContainsAny(word, "/.") {
			continue
		}
		if info, err := os.Stat(word); err != nil || !info.Mode().IsRegular() {
			continue
		}
		if v.argv[i], err = filepath.Abs(word); err != nil {
			return err
		}
		v.show(v.argv[i], false)
	}
	return nil
}
