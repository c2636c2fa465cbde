package sandbox

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// chooseBase is the directory that runtimes are kept in: dir, or one below the
// system's temporary directory if the uid of a box could not walk to dir, as
// in the home of root.
func chooseBase(dir string) (string, error) {
	if dir != "" {
		dir, err := filepath.Abs(dir)
		if err != nil {
			return "", err
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return "", err
		}
		// Only root gives its boxes a uid of their own.
		if dir, err = filepath.EvalSymlinks(dir); err != nil {
			return "", err
		}
		if os.Geteuid() != 0 || traversable(dir) {
			return dir, checkOwned(dir)
		}
	}
	fallback := filepath.Join(os.TempDir(), "writ-sandbox-"+strconv.Itoa(os.Geteuid()))
	if err := os.Mkdir(fallback, 0o755); err != nil && !os.IsExist(err) {
		return "", err
	}
	// Somebody else may have made it first, in a directory all may write to.
	if err := checkOwned(fallback); err != nil {
		return "", err
	}
	if err := os.Chmod(fallback, 0o755); err != nil {
		return "", err
	}
	if !traversable(fallback) {
		return "", fmt.Errorf("%s: other users cannot enter it; set a data directory they can", fallback)
	}
	return fallback, nil
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
	case st.Uid != uint32(os.Geteuid()) && st.Uid != 0:
		return fmt.Errorf("%s belongs to uid %d", path, st.Uid)
	case st.Mode&0o022 != 0:
		return fmt.Errorf("%s is writable by others", path)
	}
	return nil
}
