//go:build amd64 || arm64

package sandbox

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"aob.dev/writ/executors/sandbox/spawn"
)

// Servers starts isolated servers. It is safe for concurrent use. Close it after
// the servers have ended: its end ends them too.
type Servers struct {
	mu     sync.Mutex
	forks  *spawner // nil until the first start, and when closed
	closed bool
}

// NewServers makes a Servers. Nothing runs until the first start.
func NewServers() *Servers { return &Servers{} }

// Close ends the process that starts servers, and with it the servers that are
// left.
func (s *Servers) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.forks != nil {
		s.forks.close()
	}
	s.forks, s.closed = nil, true
}

func (s *Servers) spawner() (*spawner, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errors.New("closed")
	}
	if s.forks == nil {
		s.forks = newSpawner(false)
	}
	return s.forks, nil
}

// Start runs a server in isolation. If it cannot isolate the server, it fails.
func (s *Servers) Start(srv Server) (*ServerProcess, error) {
	view, err := srv.see()
	if err != nil {
		return nil, err
	}
	spec, err := srv.spec(view)
	if err != nil {
		return nil, err
	}
	forks, err := s.spawner()
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, try := range serverDrivers() {
		proc, err := forks.server(spec.with(try), srv.Offline)
		if err == nil {
			proc.Invisible, proc.Barred = view.invisible, srv.barred()
			return proc, nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", try.name, err))
		if failed := (*startError)(nil); errors.As(err, &failed) {
			return nil, view.missing(err) // isolated, but the program does not start
		}
	}
	return nil, fmt.Errorf("cannot be isolated on this machine: %w", errors.Join(errs...))
}

// serverDriver is a way to isolate a server, with a /proc of its own or without: where the machine
// has masked parts of its own, a new one cannot be mounted.
type serverDriver struct {
	name string
	proc bool
}

func serverDrivers() []serverDriver {
	return []serverDriver{{Namespaces, true}, {Namespaces + " without /proc", false}}
}

// startError is a program that was isolated and could not be executed.
type startError struct{ error }

func (e *startError) Unwrap() error { return e.error }

// missing explains why an existing program was not found: it needs files that the server does not
// see.
func (v *visible) missing(err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return fmt.Errorf("%w: the server does not see the interpreter of its first line, or its loader: declare where it is with files=PATH", err)
}

// barred lists the declared files that the server may not read or write according to their modes:
// it has the uid of this process and no capability. Of a directory it checks the entries, too, up
// to the first that is barred.
func (srv *Server) barred() (list []string) {
	for _, f := range srv.Files {
		paths := []string{f.Path}
		if entries, err := os.ReadDir(f.Path); err == nil {
			for _, e := range entries[:min(len(entries), maxEntries)] {
				paths = append(paths, filepath.Join(f.Path, e.Name()))
			}
		}
		for _, path := range paths {
			if why := f.bars(path); why != "" {
				list = append(list, why)
				break
			}
		}
	}
	return list
}

// maxEntries bounds the entries of a declared directory that are checked.
const maxEntries = 256

// bars explains why the server may not use a path as declared; empty: it may.
func (f ServerFile) bars(path string) string {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil {
		return ""
	}
	need, verb, how := uint32(4), "read", "r"
	if f.Write {
		need, verb, how = 6, "write", "rw"
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		need, how = need|1, how+"x"
	}
	has, uid := st.Mode&7, os.Geteuid()
	groups, _ := os.Getgroups() // none: the mode for others counts
	switch {
	case int(st.Uid) == uid:
		has = st.Mode >> 6 & 7
	case slices.Contains(append(groups, os.Getegid()), int(st.Gid)):
		has = st.Mode >> 3 & 7
	}
	if has&need == need {
		return ""
	}
	return fmt.Sprintf("the server, with uid %d and no capability, may not %s %s, which belongs to uid %d with mode %04o: chown -R %d %s, or chmod -R a+%s %s", uid, verb, path, st.Uid, st.Mode&0o7777, uid, f.Path, how, f.Path)
}

// spec prepares the directories of the server.
func (srv *Server) spec(view *visible) (*serverSpec, error) {
	base, err := filepath.Abs(srv.Dir)
	if err != nil {
		return nil, err
	}
	s := &serverSpec{
		visible: view, root: filepath.Join(base, "root"), home: filepath.Join(base, "home"), empty: filepath.Join(base, "empty"), env: srv.environment(),
		sandboxSpec: sandboxSpec{ID: -1, OwnRoot: true},
	}
	for _, dir := range []string{s.root, s.home} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
	}
	return s, s.files(base)
}

// files makes the files that replace those of the machine.
func (s *serverSpec) files(base string) error {
	for name, text := range map[string]string{"empty": "", "passwd": "skill:x:0:0:skill:" + serverHome + ":/bin/sh\n", "group": "skill:x:0:\n"} {
		path := filepath.Join(base, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
		if text != "" {
			s.etc = append(s.etc, [2]string{path, "/etc/" + name})
		}
	}
	return nil
}

// environment is the whole environment of the server: the configured variables, and four that
// programs need.
func (srv *Server) environment() []string {
	env := map[string]string{"PATH": SearchPath(srv.Env, srv.Files), "LANG": "C.UTF-8", "HOME": serverHome, "TMPDIR": serverTmp}
	if lang := os.Getenv("LANG"); lang != "" {
		env["LANG"] = lang
	}
	for _, v := range srv.Env {
		name, value, _ := strings.Cut(v, "=")
		env[name] = value
	}
	var list []string
	for name, value := range env {
		list = append(list, name+"="+value)
	}
	return list
}

// with is the server as a driver isolates it.
func (s *serverSpec) with(d serverDriver) *serverSpec {
	c := *s
	c.proc = d.proc
	return &c
}

// server forks one and waits until it has become the program.
func (s *spawner) server(spec *serverSpec, offline bool) (*ServerProcess, error) {
	namespaces := uintptr(unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS)
	if offline {
		namespaces |= unix.CLONE_NEWNET
	}
	b, p, err := s.isolate(namespaces, true, &spec.sandboxSpec, spec.compile)
	if err != nil {
		return nil, err
	}
	if err := becomes(b.report, p); err != nil {
		_ = b.proc.Kill()
		_, _ = b.proc.Wait() // killed
		b.closePipes()
		return nil, err
	}
	b.report.Close()
	wait := func() error { _, err := b.proc.Wait(); return err }
	return &ServerProcess{Stdin: b.feed, Stdout: b.out, Stderr: b.errs, Wait: wait, Kill: b.kill}, nil
}

// becomes waits until the program is executed, which closes the report, or returns the reason of
// the failure.
func becomes(report *os.File, p *program) error {
	if err := report.SetReadDeadline(time.Now().Add(setupTimeout)); err != nil {
		return err
	}
	raw, err := io.ReadAll(io.LimitReader(report, 64))
	if err != nil {
		return fmt.Errorf("isolate: %w", err)
	}
	failure, ok := spawn.ParseFailure(raw)
	switch {
	case len(raw) == 0:
		return nil
	case !ok:
		return fmt.Errorf("isolate: unknown report %s", strconv.Quote(string(raw)))
	case failure.Call == len(p.steps)-1 && failure.Errno != syscall.EPERM:
		return &startError{p.explain(failure)}
	}
	return p.explain(failure)
}
