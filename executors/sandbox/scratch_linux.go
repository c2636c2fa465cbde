//go:build amd64 || arm64

package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

const sessionPrefix = "session-"

// scratch makes directories for the drivers that cannot mount a tmpfs. Those of one Sandbox are in
// a session directory, locked by the process; an unlocked session was left by a crash.
type scratch struct {
	runtime string // host path
	session string // relative to runtime
	lock    *os.File
	next    atomic.Int64
}

// newScratch removes the sessions of dead processes and begins one. It locks their
// parent meanwhile, so that no other process removes the new session before it is
// locked.
func newScratch(runtime string) (*scratch, error) {
	tasks := filepath.Join(runtime, taskDir)
	parent, err := lockDir(tasks, unix.LOCK_EX)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", tasks, err)
	}
	defer parent.Close()
	sweepSessions(tasks)
	dir, err := os.MkdirTemp(tasks, sessionPrefix)
	if err != nil {
		return nil, err
	}
	// Passable for the uid of a sandbox, not listable: each sandbox finds only
	// its own.
	if err := os.Chmod(dir, 0o711); err != nil { //nolint:gosec // G302: sandboxes of another user pass
		return nil, err
	}
	lock, err := lockDir(dir, unix.LOCK_EX|unix.LOCK_NB)
	if err != nil {
		os.RemoveAll(dir)
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	return &scratch{runtime: runtime, session: filepath.Join(taskDir, filepath.Base(dir)), lock: lock}, nil
}

// make creates a directory for one sandbox with an empty input file in it, owned
// by uid unless that is negative, and returns its path relative to the runtime.
func (s *scratch) make(uid int) (string, error) {
	rel := filepath.Join(s.session, fmt.Sprintf("box-%d", s.next.Add(1)))
	dir := filepath.Join(s.runtime, rel)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	input := filepath.Join(dir, inputName)
	if err := os.WriteFile(input, nil, 0o600); err != nil {
		return rel, err
	}
	if uid < 0 {
		return rel, nil
	}
	if err := os.Chown(input, uid, uid); err != nil {
		return rel, err
	}
	return rel, os.Chown(dir, uid, uid)
}

func (s *scratch) remove(rel string) error {
	return os.RemoveAll(filepath.Join(s.runtime, rel))
}

// close removes the session. A crash before it is done leaves it unlocked.
func (s *scratch) close() error {
	err := os.RemoveAll(filepath.Join(s.runtime, s.session))
	s.lock.Close()
	return err
}

// sweepSessions removes sessions that no process has locked.
func sweepSessions(tasks string) {
	entries, _ := os.ReadDir(tasks)
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), sessionPrefix) {
			continue
		}
		dir := filepath.Join(tasks, e.Name())
		lock, err := lockDir(dir, unix.LOCK_EX|unix.LOCK_NB)
		if err != nil {
			continue
		}
		os.RemoveAll(dir)
		lock.Close()
	}
}

// lockDir opens a directory and locks it until the file is closed.
func lockDir(dir string, how int) (*os.File, error) {
	f, err := os.Open(dir) //nolint:gosec // G304: a path of ours
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), how); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
