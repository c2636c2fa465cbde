//go:build amd64 || arm64

package sandbox

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// chooseBase is the directory of the runtimes: dir, or one below the system's temporary
// directory if the uid of a sandbox cannot reach dir, as in the home of root.
func chooseBase(dir string) (string, error) {
	if dir != "" {
		dir, err := filepath.Abs(dir)
		if err != nil {
			return "", err
		}
		if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // G301: sandboxes of another user pass
			return "", err
		}
		// Only root gives its sandboxes a uid of their own.
		if dir, err = filepath.EvalSymlinks(dir); err != nil {
			return "", err
		}
		if os.Geteuid() != 0 || traversable(dir) {
			return dir, checkOwned(dir)
		}
	}
	// A temporary directory of one's own may be closed to others too.
	shared := []string{os.TempDir(), "/tmp", "/var/tmp"}
	for _, tmp := range shared {
		if os.Geteuid() != 0 || traversable(tmp) {
			return ownBelow(tmp)
		}
	}
	return "", fmt.Errorf("scripts run as other users, who cannot enter any of %s: set TMPDIR to a directory that they can enter", strings.Join(shared, ", "))
}

// ownBelow is this user's directory for runtimes below a shared one. Its name is not predictable,
// or another user could create it first and so prevent this program from starting. A directory from
// an earlier start is used again.
func ownBelow(tmp string) (string, error) {
	if err := keepsNames(tmp); err != nil {
		return "", err
	}
	prefix := "writ-sandbox-" + strconv.Itoa(os.Geteuid()) + "-"
	known, err := filepath.Glob(filepath.Join(tmp, prefix+"*"))
	if err != nil {
		return "", err
	}
	for _, dir := range known {
		if checkOwned(dir) == nil && ownedByUs(dir) {
			return dir, nil
		}
	}
	dir, err := os.MkdirTemp(tmp, prefix)
	if err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o711) //nolint:gosec // G302: sandboxes of another user pass
}

// keepsNames refuses a directory in which others may rename our files.
func keepsNames(dir string) error {
	info, err := os.Stat(dir)
	if err == nil && info.Mode().Perm()&0o022 != 0 && info.Mode()&fs.ModeSticky == 0 {
		err = fmt.Errorf("%s: others may rename what is in it (chmod +t, or set TMPDIR to another directory)", dir)
	}
	return err
}

// ownedByUs is stricter than checkOwned: we cannot write to files of root.
func ownedByUs(dir string) bool {
	var st unix.Stat_t
	return unix.Lstat(dir, &st) == nil && st.Uid == uint32(os.Geteuid()) //nolint:gosec // G115: within range
}

// traversable reports whether every directory down to path lets others pass.
func traversable(path string) bool {
	for {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm()&0o001 == 0 {
			return false
		}
		parent := filepath.Dir(path)
		if parent == path {
			return true
		}
		path = parent
	}
}

// checkOwned refuses a path that is not a directory of this user or root, or
// that others may write to.
func checkOwned(path string) error {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFDIR:
		return fmt.Errorf("%s is not a directory", path)
	case st.Uid != uint32(os.Geteuid()) && st.Uid != 0: //nolint:gosec // G115: within range
		return fmt.Errorf("%s belongs to uid %d", path, st.Uid)
	case st.Mode&0o022 != 0:
		return fmt.Errorf("%s is writable by others", path)
	}
	return nil
}
