//go:build amd64 || arm64

package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// pruned are parts of the standard library that no analysis needs: tests,
// graphics, installers, and what third parties added.
var pruned = map[string]bool{
	"test": true, "tests": true, "idlelib": true, "tkinter": true, "turtledemo": true, "lib2to3": true,
	"ensurepip": true, "distutils": true, "pydoc_data": true, "site-packages": true, "dist-packages": true,
	"__pycache__": true, "lib-dynload": true, "turtle.py": true, "sitecustomize.py": true,
}

// walkStdlib calls fn for each source file and extension module of a runtime, in a fixed
// order; rel is its path below the library directory.
func walkStdlib(p python, fn func(src, rel string, info fs.FileInfo) error) error {
	walk := func(dir, under, suffix string) error {
		return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if path != dir && (pruned[d.Name()] || strings.HasPrefix(d.Name(), "config-")) {
				if d.IsDir() {
					return fs.SkipDir
				}
				return nil
			}
			if d.IsDir() || !strings.HasSuffix(d.Name(), suffix) || strings.Contains(d.Name(), "_test") || strings.HasPrefix(d.Name(), "_tkinter.") {
				return nil
			}
			info, err := os.Stat(path) // through the symlinks distributions use
			if err != nil || !info.Mode().IsRegular() {
				return nil //nolint:nilerr // a dangling link is no part of the library
			}
			rel, err := filepath.Rel(dir, path)
			if err != nil {
				return err
			}
			return fn(path, filepath.Join(under, rel), info)
		})
	}
	if err := walk(p.Stdlib, "", ".py"); err != nil {
		return err
	}
	if p.Dynload == "" {
		return nil
	}
	return walk(p.Dynload, "lib-dynload", ".so")
}

// buildRuntime fills dir, which is empty, with a file tree in which p runs.
// Modes are set explicitly: the sandbox runs as a uid that owns nothing here.
func buildRuntime(ctx context.Context, dir string, p python) error {
	stdlib := filepath.Join("usr", p.LibDir, "python"+p.Short)
	m := image{Python: p.Version, Program: "usr/bin/python3", Library: "lib", Urandom: p.Urandom}
	loader, err := loaderOf(p.Executable)
	if err != nil {
		return fmt.Errorf("interpreter: %w", err)
	}
	libraries := map[string]bool{}
	if loader != "" {
		m.Loader = filepath.Join(m.Library, filepath.Base(loader))
		if err := copyFile(loader, filepath.Join(dir, m.Loader), 0o555); err != nil {
			return err
		}
		files, err := librariesOf(ctx, loader, p.Executable)
		if err != nil {
			return fmt.Errorf("libraries of the interpreter: %w", err)
		}
		add(libraries, files)
		addThreadLibrary(libraries)
	}
	if err := copyFile(p.Executable, filepath.Join(dir, m.Program), 0o555); err != nil {
		return err
	}
	err = walkStdlib(p, func(src, rel string, _ fs.FileInfo) error {
		if strings.HasSuffix(src, ".so") {
			files, err := librariesOf(ctx, loader, src)
			if err != nil {
				return ctx.Err() // an extension whose library is not installed is left out
			}
			add(libraries, files)
		}
		if strings.HasPrefix(filepath.Base(rel), buildVariables) {
			return writeBuildVariables(filepath.Join(dir, stdlib, rel))
		}
		if err := copyFile(src, filepath.Join(dir, stdlib, rel), 0o444); err != nil {
			return err
		}
		return copyBytecode(p, src, filepath.Join(dir, stdlib, rel))
	})
	if err != nil {
		return err
	}
	for _, file := range slices.Sorted(maps.Keys(libraries)) {
		if err := copyFile(file, filepath.Join(dir, m.Library, filepath.Base(file)), 0o555); err != nil {
			return err
		}
	}
	if err := compileAll(ctx, p, dir, stdlib); err != nil {
		return err
	}
	if p.Urandom {
		if err := makeRandomPlace(dir); err != nil {
			return err
		}
	}
	return finishRuntime(dir, m)
}

// buildVariables begins the name of the library's module with the options and paths of
// its build: paths of the host, and nothing that a script needs.
const buildVariables = "_sysconfigdata"

// writeBuildVariables writes a module without variables in its place.
func writeBuildVariables(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // G301: sandboxes of another user pass
		return err
	}
	return os.WriteFile(path, []byte("build_time_vars = {}\n"), 0o444) //nolint:gosec // G306: sandboxes of another user read it
}

func add(set map[string]bool, files []string) {
	for _, f := range files {
		set[f] = true
	}
}

// addThreadLibrary adds the library that glibc loads by name when a thread ends, and that no
// dynamic section lists.
func addThreadLibrary(libraries map[string]bool) {
	for file := range maps.Clone(libraries) {
		beside := filepath.Join(filepath.Dir(file), "libgcc_s.so.1")
		if _, err := os.Stat(beside); err == nil && strings.HasPrefix(filepath.Base(file), "libc.so") {
			libraries[beside] = true
		}
	}
}

// copyBytecode copies the host's bytecode. It stays valid because copyFile preserves the time of
// the source, which the bytecode records.
func copyBytecode(p python, src, dst string) error {
	cached := func(py string) string {
		name := strings.TrimSuffix(filepath.Base(py), ".py") + "." + p.CacheTag + ".pyc"
		return filepath.Join(filepath.Dir(py), "__pycache__", name)
	}
	if _, err := os.Stat(cached(src)); err != nil {
		return nil //nolint:nilerr // compileAll makes it
	}
	return copyFile(cached(src), cached(dst), 0o444)
}

// compileProgram compiles boot.py, and the files of the library at argv[2] without valid bytecode,
// for a runtime that will be at / instead of argv[1]. A library file that does not compile, such as
// a template, is skipped.
const compileProgram = `
import compileall, py_compile, sys
root, library, boot, compiled = sys.argv[1:]
compileall.compile_dir(library, quiet=2, stripdir=root, prependdir="/")
py_compile.compile(boot, compiled, "boot.py", doraise=True,
    invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
`

// compileAll writes the bytecode: without it each start and each import would
// compile again, since the sandbox cannot write any.
func compileAll(ctx context.Context, p python, dir, stdlib string) error {
	boot := filepath.Join(dir, bootSource)
	if err := os.WriteFile(boot, bootScript, 0o444); err != nil { //nolint:gosec // G306: sandboxes of another user read it
		return err
	}
	cmd := exec.CommandContext(ctx, p.Executable, "-I", "-S", "-c", compileProgram, //nolint:gosec // G204: found in PATH
		dir, filepath.Join(dir, stdlib), boot, filepath.Join(dir, bootFile))
	cmd.Env = []string{}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("compile: %w: %s", err, out)
	}
	return nil
}

func finishRuntime(dir string, m image) error {
	// Many scripts use /tmp; in the sandbox it is the scratch.
	if err := os.Symlink(taskDir, filepath.Join(dir, "tmp")); err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Join(dir, taskDir), 0o711); err != nil { //nolint:gosec // G301: sandboxes of another user pass
		return err
	}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.Name() == taskDir && filepath.Dir(path) == dir:
			return os.Chmod(path, 0o711) //nolint:gosec // G302: sandboxes of another user pass; runs must not list each other
		case d.IsDir():
			return os.Chmod(path, 0o755) //nolint:gosec // G302: sandboxes of another user pass
		case d.Type().IsRegular() && d.Name() != filepath.Base(m.Loader):
			return addRead(path, d)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := writeImage(dir, m); err != nil {
		return err
	}
	return syncTree(dir)
}

// writeImage writes the file that a start reads first, after everything else.
func writeImage(dir string, m image) error {
	var err error
	if m.Files, err = inventory(dir); err != nil {
		return err
	}
	raw, err := json.Marshal(m)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, imageFile)
	if err := os.WriteFile(path, raw, 0o444); err != nil { //nolint:gosec // G306: sandboxes of another user read it
		return err
	}
	return os.Chmod(path, 0o444) //nolint:gosec // G302: whatever umask made of it
}

// addRead makes a file readable for all, whatever umask made of it.
func addRead(path string, d fs.DirEntry) error {
	info, err := d.Info()
	if err != nil {
		return err
	}
	return os.Chmod(path, info.Mode().Perm()|0o444)
}

// syncTree puts the tree on disk before the rename makes it final, so that a
// power failure cannot leave a runtime of empty files under its final name.
func syncTree(dir string) error {
	f, err := os.Open(dir) //nolint:gosec // G304: a path of ours
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Syncfs(int(f.Fd()))
}

// copyFile copies content and modification time, making parent directories.
func copyFile(src, dst string, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(dst), 0o755); err != nil { //nolint:gosec // G301: sandboxes of another user pass
		return err
	}
	in, err := os.Open(src) //nolint:gosec // G304: a path of ours
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(dst, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600) //nolint:gosec // G304: a path of ours
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err := errors.Join(err, out.Chmod(mode), out.Close()); err != nil {
		return err
	}
	return os.Chtimes(dst, info.ModTime(), info.ModTime())
}
