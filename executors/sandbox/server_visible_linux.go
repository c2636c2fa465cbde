//go:build amd64 || arm64

package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
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

// visible is what a server sees of the machine.
type visible struct {
	binds  []bind
	links  [][2]string // path inside, what it points to
	masks  []bind      // places inside that must be empty
	argv   []string
	unseen []string
	hidden []string // without symlinks
}

// Directories of the system, each of which may be missing, and what of /etc a
// program needs to resolve names, check certificates and load libraries.
var (
	systemDirs  = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/var/lib/ca-certificates"}
	systemFiles = []string{
		"/etc/ssl", "/etc/pki", "/etc/ca-certificates", "/etc/ca-certificates.conf", "/etc/resolv.conf", "/etc/hosts",
		"/etc/host.conf", "/etc/gai.conf", "/etc/nsswitch.conf", "/etc/services", "/etc/protocols", "/etc/localtime",
		"/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/mime.types", "/etc/fonts",
	}
	systemDevices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}
)

// errHidden refuses to show what no server may see.
var errHidden = errors.New("holds keys or records of writ, which no skill server may see")

// see finds what the server needs. Nothing is changed.
func (s *Server) see() (*visible, error) {
	v := &visible{argv: slices.Clone(s.Command)}
	if err := v.hide(s.Hidden); err != nil {
		return nil, err
	}
	for _, dir := range systemDirs {
		v.system(dir)
	}
	for _, path := range systemFiles {
		v.show(path, false)
	}
	if err := v.command(); err != nil {
		return nil, err
	}
	for _, f := range s.Files {
		if err := v.declare(f); err != nil {
			return nil, err
		}
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

// system shows a directory, or the symlink that has taken its place.
func (v *visible) system(dir string) {
	info, err := os.Lstat(dir)
	if err != nil {
		return
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		if to, err := os.Readlink(dir); err == nil {
			v.links = append(v.links, [2]string{dir, to})
		}
		return
	}
	v.show(dir, false)
}

// declare shows what the operator has declared.
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

// show makes a path visible at its own place. It does nothing where the path does not
// exist, is visible already or is hidden.
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
	if !write && v.sees(path, real) {
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

// sees reports whether the path is in a directory that is shown.
func (v *visible) sees(path, real string) bool {
	return slices.ContainsFunc(v.binds, func(b bind) bool {
		in, ok := below(path, b.target)
		return ok && !b.file && filepath.Join(b.source, in) == real
	})
}

func (v *visible) isHidden(real string) bool {
	return slices.ContainsFunc(v.hidden, func(dir string) bool { _, in := below(real, dir); return in })
}

// mask empties what is hidden below directories that are shown.
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
		if !filepath.IsAbs(word) {
			continue
		}
		if _, err := os.Stat(word); err == nil && !v.reaches(filepath.Clean(word)) {
			v.unseen = append(v.unseen, word)
		}
	}
}

// reaches reports whether a path leads to a file inside, by the symlinks that are there.
func (v *visible) reaches(path string) bool {
	at, rest := "/", strings.Split(path, "/")
	for links := 0; len(rest) > 0; rest = rest[1:] {
		next := filepath.Join(at, rest[0])
		to := v.linkAt(next)
		if to == "" {
			at = next
			continue
		}
		if links++; links > maxLinks {
			return false
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(at, to)
		}
		at, rest = "/", append(strings.Split(to, "/"), rest[1:]...) // the first is empty
	}
	_, err := os.Lstat(v.sourceOf(at))
	return err == nil
}

// linkAt is what a place inside points to; empty: it is no symlink.
func (v *visible) linkAt(place string) string {
	for _, l := range v.links {
		if l[0] == place {
			return l[1]
		}
	}
	to, err := os.Readlink(v.sourceOf(place))
	if err != nil {
		return ""
	}
	return to
}

// sourceOf is what is shown at a place inside; empty: nothing is.
func (v *visible) sourceOf(place string) (source string) {
	nearest := -1
	for _, b := range v.binds {
		in, ok := below(place, b.target)
		if ok && (!b.file || in == ".") && len(b.target) > nearest {
			source, nearest = filepath.Join(b.source, in), len(b.target)
		}
	}
	if v.isHidden(source) {
		return ""
	}
	return source
}

// below reports whether path is dir or in it; rel is its path below dir.
func below(path, dir string) (rel string, ok bool) {
	if path == dir {
		return ".", true
	}
	return strings.CutPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// command shows what the command runs: the program, the script that it is given,
// and the interpreters of both.
func (v *visible) command() error {
	if len(v.argv) == 0 {
		return errors.New("no command")
	}
	path, err := lookUp(v.argv[0])
	if err != nil {
		return err
	}
	v.argv[0] = path
	v.program(path)
	rest := 1
	if filepath.Base(path) == "env" { // env A=b program …
		for rest < len(v.argv) && (strings.Contains(v.argv[rest], "=") || strings.HasPrefix(v.argv[rest], "-")) {
			rest++
		}
		if rest < len(v.argv) {
			if path, err := lookUp(v.argv[rest]); err == nil {
				v.argv[rest] = path
				v.program(path)
			}
			rest++
		}
	}
	v.script(v.argv[min(rest, len(v.argv)):])
	return nil
}

// script shows the first argument that is a file: what an interpreter runs. Its
// path becomes absolute, as the server has a working directory of its own.
func (v *visible) script(args []string) {
	for i, word := range args {
		if strings.HasPrefix(word, "-") || !strings.ContainsAny(word, "/.") {
			continue
		}
		if info, err := os.Stat(word); err != nil || !info.Mode().IsRegular() {
			continue
		}
		if path, err := filepath.Abs(word); err == nil {
			args[i] = path
			v.program(path)
		}
		return
	}
}

func lookUp(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", err
	}
	return filepath.Abs(path)
}
