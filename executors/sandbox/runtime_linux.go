//go:build amd64 || arm64

package sandbox

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

//go:embed boot.py
var bootScript []byte

// Names inside a runtime directory.
const (
	bootFile   = "boot.pyc"
	bootSource = "boot.py"
	taskDir    = "task" // scratch: mount point of the tmpfs, or parent of the scratch directories
	imageFile  = "image.json"
	inputName  = "input" // as in boot.py
)

// recipe changes whenever the code would build something else from the same
// interpreter, so that an old runtime is not used for a new one.
const recipe = "writ sandbox runtime 3"

// staleAge is the age at which an unfinished build or a canary's secret is removed.
const staleAge = time.Hour

// idleAge is the time after which an unused runtime is removed: that of an upgraded Python or of an
// older version of this program.
const idleAge = 7 * 24 * time.Hour

// Prefixes of the temporary names beside the runtimes.
const (
	buildPrefix  = "build-"
	canaryPrefix = "canary-"
	readyPrefix  = "python-" // of a finished runtime
)

// image describes how to execute Python in a runtime; paths are relative to it. It
// is written last, inside the build directory, before the rename.
type image struct {
	Python  string // version
	Loader  string // empty for a static interpreter
	Program string
	Library string // directory of shared libraries
	Urandom bool   // it reads /dev/urandom
	Files   string // digest of the names and sizes of all other files
}

// entry is the file that execve is given.
func (m image) entry() string {
	if m.Loader != "" {
		return m.Loader
	}
	return m.Program
}

// command is the argument vector for a sandbox in which the runtime is at root.
//
// The loader is called by name because the path compiled into the program
// names the host's, which the sandbox may not have. -I -S -E -B: no user site, no
// site module, no environment, no bytecode written.
func (m image) command(root string, preload []string) []string {
	argv := append(m.interpreter(root), "-I", "-S", "-E", "-B", "-X", "utf8", filepath.Join(root, bootFile))
	return append(argv, preload...)
}

// interpreter is how such a vector begins.
func (m image) interpreter(root string) []string {
	var argv []string
	if m.Loader != "" {
		argv = append(argv, filepath.Join(root, m.Loader), "--library-path", filepath.Join(root, m.Library))
	}
	return append(argv, filepath.Join(root, m.Program))
}

// runtimeDir is a prepared runtime.
type runtimeDir struct {
	path  string
	image image
}

// prepareRuntime returns the runtime for p below base, building it if it is not
// there. Two processes may build at once: each works under a name of its own
// and the first rename wins. A crash leaves a build directory that a later
// call removes, never a half-built runtime.
func prepareRuntime(ctx context.Context, base string, p python) (runtimeDir, error) {
	key, err := runtimeKey(p)
	if err != nil {
		return runtimeDir{}, fmt.Errorf("hash python: %w", err)
	}
	final := filepath.Join(base, readyPrefix+p.Version+"-"+key)
	if rt, err := readyRuntime(final); !errors.Is(err, fs.ErrNotExist) {
		return rt, err
	}
	return makeRuntime(ctx, base, final, p)
}

// makeRuntime builds the runtime for p and gives it its name.
func makeRuntime(ctx context.Context, base, final string, p python) (runtimeDir, error) {
	tmp, err := os.MkdirTemp(base, buildPrefix)
	if err != nil {
		return runtimeDir{}, err
	}
	defer os.RemoveAll(tmp)
	if err := buildRuntime(ctx, tmp, p); err != nil {
		return runtimeDir{}, fmt.Errorf("build runtime: %w", err)
	}
	if err := os.Rename(tmp, final); err != nil && !errors.Is(err, fs.ErrExist) && !errors.Is(err, unix.ENOTEMPTY) {
		return runtimeDir{}, err
	}
	return openRuntime(final)
}

// errIncomplete is that files of a runtime are missing or truncated, as where a service
// removes old files from a temporary directory.
var errIncomplete = errors.New("files are missing or changed")

// readyRuntime is the runtime at path; fs.ErrNotExist: there is none, or an incomplete
// one that no process used was removed.
func readyRuntime(path string) (runtimeDir, error) {
	rt, err := openRuntime(path)
	if !errors.Is(err, errIncomplete) {
		return rt, err
	}
	if !retire(path) {
		return runtimeDir{}, fmt.Errorf("%s: %w, and another process uses it: end that process and start again", path, err)
	}
	return runtimeDir{}, fs.ErrNotExist
}

// openRuntime accepts a runtime only if nobody but this user or root could
// have written it, and if all of it is there.
func openRuntime(path string) (runtimeDir, error) {
	if err := checkOwned(path); err != nil {
		return runtimeDir{}, err
	}
	raw, err := os.ReadFile(filepath.Join(path, imageFile)) //nolint:gosec // G304: a path of ours
	if err != nil {
		return runtimeDir{}, err
	}
	rt := runtimeDir{path: path}
	if err := json.Unmarshal(raw, &rt.image); err != nil {
		return runtimeDir{}, fmt.Errorf("%s: %w", imageFile, err)
	}
	files, err := inventory(path)
	if err != nil {
		return runtimeDir{}, err
	}
	if files != rt.image.Files {
		return runtimeDir{}, errIncomplete
	}
	return rt, nil
}

// inventory is a digest of the names, kinds and sizes of all files of a runtime, without its image
// file and the files below its tasks.
func inventory(dir string) (string, error) {
	h := sha256.New()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil || rel == imageFile || rel == "." {
			return err
		}
		size := int64(0)
		if d.Type().IsRegular() {
			info, err := d.Info()
			if err != nil {
				return err
			}
			size = info.Size()
		}
		fmt.Fprintf(h, "%q %s %d\n", rel, d.Type(), size)
		if rel == taskDir {
			return fs.SkipDir
		}
		return nil
	})
	return hex.EncodeToString(h.Sum(nil)), err
}

// runtimeKey identifies the input of a build: the recipe, boot.py, the
// content of the interpreter, and name, size and time of each library file.
// Reading their content would take long, and a package manager that changes it also
// changes one of the other three.
func runtimeKey(p python) (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%x\n%+v\n", recipe, sha256.Sum256(bootScript), p)
	f, err := os.Open(p.Executable)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	err = walkStdlib(p, func(_, rel string, info fs.FileInfo) error {
		fmt.Fprintf(h, "%q %d %d\n", rel, info.Size(), info.ModTime().UnixNano())
		return nil
	})
	return hex.EncodeToString(h.Sum(nil)[:8]), err
}

// sweepBase removes leftovers of crashed processes beside the runtimes, and unused runtimes.
func sweepBase(base string, now time.Time) {
	entries, _ := os.ReadDir(base)
	for _, e := range entries {
		path := filepath.Join(base, e.Name())
		switch name := e.Name(); {
		case strings.HasPrefix(name, buildPrefix), strings.HasPrefix(name, canaryPrefix):
			if info, err := e.Info(); err == nil && now.Sub(info.ModTime()) > staleAge {
				_ = os.RemoveAll(path) // the next Open tries again
			}
		case strings.HasPrefix(name, readyPrefix):
			sweepRuntime(path, now)
		}
	}
}

// sweepRuntime removes a runtime in whose tasks nothing began or ended for
// idleAge, and which has no session of a living process.
func sweepRuntime(path string, now time.Time) {
	info, err := os.Stat(filepath.Join(path, taskDir))
	if err == nil && now.Sub(info.ModTime()) > idleAge {
		retire(path)
	}
}

// retire removes a runtime; false: it has a session of a living process, or
// could not be moved.
func retire(path string) bool {
	tasks := filepath.Join(path, taskDir)
	if lock, err := lockDir(tasks, unix.LOCK_EX|unix.LOCK_NB); err == nil {
		defer lock.Close()
		sweepSessions(tasks)
		if left, err := os.ReadDir(tasks); err != nil || len(left) > 0 {
			return false
		}
	} else if !errors.Is(err, fs.ErrNotExist) { // without tasks nobody works there
		return false
	}
	// Out of reach in one step: half a runtime must not be found under its name.
	gone := filepath.Join(filepath.Dir(path), buildPrefix+filepath.Base(path))
	if os.Rename(path, gone) != nil {
		return false
	}
	_ = os.RemoveAll(gone) // the rest is swept as a build
	return true
}

// findRuntime is the runtime of the interpreter at path or, if that is empty, of
// the first usable one; where there is none, of the one that this program
// carries, if it does.
func findRuntime(ctx context.Context, base, path string) (runtimeDir, error) {
	p, err := findPython(ctx, path)
	switch {
	case err == nil:
		return prepareRuntime(ctx, base, p)
	case path != "" || embeddedPython == "" || ctx.Err() != nil:
		return runtimeDir{}, err
	}
	return prepareEmbedded(ctx, base)
}

// prepareEmbedded is prepareRuntime for the Python that this program carries. It
// is unpacked only to build the runtime.
func prepareEmbedded(ctx context.Context, base string) (runtimeDir, error) {
	key := sha256.Sum256(fmt.Appendf(nil, "%s\n%x\nembedded %s\n", recipe, sha256.Sum256(bootScript), embeddedPython))
	final := filepath.Join(base, fmt.Sprintf("%s%s-%x", readyPrefix, embeddedPython, key[:8]))
	if rt, err := readyRuntime(final); !errors.Is(err, fs.ErrNotExist) {
		return rt, err
	}
	tmp, err := os.MkdirTemp(base, buildPrefix)
	if err != nil {
		return runtimeDir{}, err
	}
	defer os.RemoveAll(tmp)
	home := filepath.Join(tmp, "python")
	if err := extractPython(home); err != nil {
		return runtimeDir{}, fmt.Errorf("unpack the embedded python: %w", err)
	}
	p, err := askPython(ctx, filepath.Join(home, "bin", "python3"))
	if err != nil {
		return runtimeDir{}, fmt.Errorf("embedded python (it needs glibc): %w", err)
	}
	p.Urandom = true
	return makeRuntime(ctx, base, final, p)
}

// randomDevice is where an interpreter that was built for kernels without
// getrandom reads its randomness.
const randomDevice = "dev/urandom"

// makeRandomPlace puts a file into a runtime that the device is mounted on.
func makeRandomPlace(dir string) error {
	path := filepath.Join(dir, randomDevice)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // G301: sandboxes of another user pass
		return err
	}
	return os.WriteFile(path, nil, 0o444) //nolint:gosec // G306: sandboxes of another user read it
}
