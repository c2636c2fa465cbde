//go:build unix

package datadir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// InUse reports whether a process uses the data directory. It changes nothing.
func InUse(dir string) bool {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDONLY, 0) //nolint:gosec // G304: the path is made of the data directory
	if err != nil {
		return false
	}
	defer f.Close()
	return errors.Is(unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB), unix.EWOULDBLOCK)
}

// Lock takes the data directory for this process. The kernel gives the lock
// back when the process dies, so a crash leaves no stale lock.
func Lock(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600) //nolint:gosec // G304: the path is made of the data directory
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close() // the error that counts is the lock's
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("data directory %s is in use by another writ process: stop it, or name another directory with --data", dir)
		}
		return nil, err
	}
	return f, nil
}
