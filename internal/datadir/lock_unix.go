//go:build unix

package datadir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

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

// lockWait is how long Lock waits for a lock that is held for a moment: by a process that asks whether
// the directory is in use, or by a child of one that has ended, before it runs its own program.
const lockWait = time.Second

// Lock takes the data directory for this process. The kernel gives the lock
// back when the process dies, so a crash leaves no stale lock.
func Lock(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600) //nolint:gosec // G304: the path is made of the data directory
	if err != nil {
		return nil, err
	}
	for late := time.Now().Add(lockWait); ; time.Sleep(lockWait / 50) {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if held := errors.Is(err, unix.EWOULDBLOCK); held && time.Now().Before(late) {
			continue
		} else if held {
			err = fmt.Errorf("data directory %s is in use by another writ process: stop it, or name another directory with --data", dir)
		}
		_ = f.Close() // the error that counts is the lock's
		return nil, err
	}
}
