//go:build amd64 || arm64

package sandbox

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// maxLinks bounds how many symlinks and interpreters are followed.
const maxLinks = 16

// program shows what is needed to run a file: each symlink on the way to it, the place
// where it is installed, and its interpreter.
func (v *visible) program(path string) {
	for range maxLinks {
		v.installed(path)
		to, err := os.Readlink(path)
		if err != nil {
			break
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(path), to)
		}
		path = to
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return
	}
	v.installed(real)
	if interpreter := interpreterOf(real); interpreter != "" && interpreter != real && len(v.binds) < maxBinds {
		v.program(interpreter)
	}
}

// maxBinds ends a chain of interpreters that interpret each other.
const maxBinds = 200

// installed shows the place of a file: the tree of modules that it is in; of an
// installation (a directory with bin) its programs and libraries; the package that it
// belongs to; else its directory. In a directory with unrelated files it shows the file
// alone.
func (v *visible) installed(path string) {
	dir := filepath.Dir(path)
	const modules = "/node_modules"
	if at := strings.Index(path, modules+"/"); at >= 0 {
		v.show(path[:at+len(modules)], false)
		return
	}
	if base := filepath.Base(dir); base == "bin" || base == "sbin" {
		for _, part := range []string{base, "lib", "lib64", "libexec", "pyvenv.cfg"} {
			v.show(filepath.Join(filepath.Dir(dir), part), false)
		}
		return
	}
	if pkg := packageOf(dir); pkg != "" {
		dir = pkg
	}
	if shared(dir) {
		v.show(path, false)
		return
	}
	v.show(dir, false)
}

// packageOf is the root of the package that a directory is in; empty: it is in none.
func packageOf(dir string) string {
	for ; !shared(dir); dir = filepath.Dir(dir) {
		for _, mark := range []string{"package.json", "pyproject.toml", "setup.py", "requirements.txt", "deno.json"} {
			if _, err := os.Stat(filepath.Join(dir, mark)); err == nil {
				return dir
			}
		}
	}
	return ""
}

// shared reports whether a directory has unrelated files: one in the root, a home, or one
// above a home.
func shared(dir string) bool {
	if filepath.Dir(dir) == "/" || filepath.Dir(filepath.Dir(dir)) == "/" && filepath.Base(filepath.Dir(dir)) == "home" || dir == "/var/tmp" {
		return true
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return false
	}
	_, above := below(home, dir)
	return above
}

// interpreterOf is the program that a script names in its first line.
func interpreterOf(path string) string {
	f, err := os.Open(path) //nolint:gosec // G304: of the operator's command
	if err != nil {
		return ""
	}
	defer f.Close()
	line, err := bufio.NewReader(io.LimitReader(f, 256)).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "#!") {
		return ""
	}
	words := strings.Fields(line[2:])
	if len(words) == 0 {
		return ""
	}
	if filepath.Base(words[0]) != "env" {
		return words[0]
	}
	for _, word := range words[1:] {
		if !strings.HasPrefix(word, "-") && !strings.Contains(word, "=") {
			name, err := lookUp(word)
			if err != nil {
				return ""
			}
			return name
		}
	}
	return ""
}
