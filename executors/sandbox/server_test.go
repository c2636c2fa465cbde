//go:build linux && (amd64 || arm64)

package sandbox_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"aob.dev/writ/executors/sandbox"
)

// leastProbes guards against a table that silently became empty.
const leastProbes = 40

// layServerBait puts out what a server must not get, and what it may.
func layServerBait(t *testing.T) *serverBait {
	t.Helper()
	b := &serverBait{Parent: os.Getpid(), Secret: fmt.Sprintf("hunter%d", os.Getpid()), Abstract: fmt.Sprintf("writ-server-%d", os.Getpid())}
	t.Setenv("WRIT_TEST_SECRET", b.Secret)
	base := t.TempDir()
	b.Declared, b.Writable = filepath.Join(base, "declared"), filepath.Join(base, "writable")
	b.Data = filepath.Join(b.Declared, "data")
	for _, dir := range []string{filepath.Join(b.Data, "keys"), b.Writable} {
		if err := os.MkdirAll(dir, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	victim := exec.Command("/bin/sleep", "600")
	victim.Env = append(os.Environ(), "WRIT_TEST_SECRET="+b.Secret)
	errs := []error{
		os.WriteFile(filepath.Join(b.Declared, "writ.yaml"), []byte("model_key: "+b.Secret), 0o644),
		os.Chmod(b.Writable, 0o777), os.WriteFile(filepath.Join(b.Declared, "text"), []byte("declared"), 0o644),
		os.WriteFile(filepath.Join(b.Data, "keys/root.pem"), []byte("PRIVATE KEY"), 0o600), victim.Start(),
	}
	tmp, err := os.CreateTemp("", "bait") //nolint:usetesting // the directory that all write to is what is tested
	if err := errors.Join(append(errs, err)...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = os.Remove(tmp.Name()), errors.Join(victim.Process.Kill(), victim.Wait()) })
	_, err1 := tmp.WriteString(b.Secret)
	err2 := errors.Join(tmp.Chmod(0o666), tmp.Close())
	b.Victim, b.Tmp, b.Socket = victim.Process.Pid, tmp.Name(), tmp.Name()+".sock"
	var err3, err4 error
	b.Home, err3 = os.UserHomeDir()
	b.Host, err4 = os.Hostname()
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		t.Fatal(err)
	}
	b.TCP = listen(t, "tcp", "127.0.0.1:0")
	listen(t, "unix", b.Socket)
	listen(t, "unix", "@"+b.Abstract)
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	b.HasScope = errno == 0 && abi >= 6
	return b
}

func listen(t *testing.T, network, addr string) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), network, addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	if network == "unix" && !strings.HasPrefix(addr, "@") {
		if err := os.Chmod(addr, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	return l.Addr().String()
}

// hostileServer is this program, which tries everything and tells what it got.
func hostileServer(t *testing.T, b *serverBait) sandbox.Server {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	return sandbox.Server{
		Command: []string{self}, Env: []string{serverVar + "=" + string(raw), "CONFIGURED=yes"}, Hidden: []string{b.Data, filepath.Join(b.Declared, "writ.yaml"), filepath.Join(b.Declared, "none")},
		Files: []sandbox.ServerFile{{Path: b.Declared}, {Path: b.Writable, Write: true}}, Dir: filepath.Join(b.Data, "servers/x"),
	}
}

func servers(t *testing.T) *sandbox.Servers {
	t.Helper()
	s := sandbox.NewServers()
	t.Cleanup(s.Close)
	return s
}

// finish runs a server to its end and gives its output.
func finish(t *testing.T, s *sandbox.Servers, srv sandbox.Server) (stdout string) {
	t.Helper()
	p, err := s.Start(srv)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		p.Kill()
		_ = p.Stdin.Close()
		_ = errors.Join(p.Stdout.Close(), p.Stderr.Close())
	}()
	out, err := io.ReadAll(p.Stdout)
	if err != nil {
		t.Fatal(err)
	}
	said, err := io.ReadAll(p.Stderr)
	if err != nil || len(said) > 0 {
		t.Errorf("standard error %q, %v", said, err)
	}
	if err := p.Wait(); err != nil {
		t.Error(err)
	}
	return string(out)
}

func findings(t *testing.T, out string) map[string]string {
	t.Helper()
	var got map[string]string
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("%v: %.500s", err, out)
	}
	return got
}

// TestServerProbes: a server that tries everything gets what is declared.
func TestServerProbes(t *testing.T) {
	all := maps.Clone(serverProbes)
	maps.Copy(all, serverDeeds)
	if len(all) < leastProbes {
		t.Fatalf("%d probes, want at least %d", len(all), leastProbes)
	}
	b := layServerBait(t)
	got := findings(t, finish(t, servers(t), hostileServer(t, b)))
	for name := range all {
		if name == "abstract unix socket" && !b.HasScope {
			continue // said to be reachable with the network on such a kernel
		}
		if !strings.HasPrefix(got[name], held) {
			t.Errorf("%s: %s", name, got[name])
		}
	}
	for name := range serverControls {
		if got[name] != "got it" {
			t.Errorf("%s: %s", name, got[name])
		}
	}
}

// TestServerProbesBite: without isolation most of them get something, else they
// would show nothing.
func TestServerProbesBite(t *testing.T) {
	b := layServerBait(t)
	srv := hostileServer(t, b)
	cmd := exec.Command(srv.Command[0])
	cmd.Env = append(os.Environ(), srv.Env...)
	cmd.Stdin = bytes.NewReader(nil)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	got, bitten := findings(t, string(out)), []string{}
	for name := range serverProbes {
		if got[name] == "got it" {
			bitten = append(bitten, name)
		}
	}
	if len(bitten) < 20 {
		slices.Sort(bitten)
		t.Errorf("only %d get something: %v", len(bitten), bitten)
	}
}

// TestServerOffline: without network nothing answers, not even on this machine.
func TestServerOffline(t *testing.T) {
	b := layServerBait(t)
	srv := hostileServer(t, b)
	srv.Offline = true
	got := findings(t, finish(t, servers(t), srv))
	for _, name := range []string{"network", "abstract unix socket"} {
		if !strings.HasPrefix(got[name], held) {
			t.Errorf("%s: %s", name, got[name])
		}
	}
}

// TestServerHome: what a server keeps in its home is there at its next start.
func TestServerHome(t *testing.T) {
	s, dir := servers(t), t.TempDir()
	shell := func(script string) string {
		return finish(t, s, sandbox.Server{Command: []string{"/bin/sh", "-c", script}, Dir: filepath.Join(dir, "a"), Hidden: []string{dir}})
	}
	shell(`echo kept > "$HOME/note"; echo lost > /tmp/note`)
	if got := shell(`/bin/cat "$HOME/note"; /bin/ls /tmp; pwd`); got != "kept\n/skill\n" {
		t.Errorf("the next start has %q", got)
	}
	other := finish(t, s, sandbox.Server{Command: []string{"/bin/sh", "-c", "/bin/ls -A"}, Dir: filepath.Join(dir, "b"), Hidden: []string{dir}})
	if other != "" {
		t.Errorf("another server has %q", other)
	}
}

// TestServerEndsWhole: what a server started ends with it.
func TestServerEndsWhole(t *testing.T) {
	p, err := servers(t).Start(sandbox.Server{Command: []string{"/bin/sh", "-c", "/bin/sleep 600 & exec /bin/sleep 600"}, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	p.Kill()
	if err := p.Wait(); err != nil {
		t.Error(err)
	}
	if out, err := io.ReadAll(p.Stdout); err != nil || len(out) > 0 { // ends when nobody holds the other end
		t.Errorf("%q, %v", out, err)
	}
	if err := errors.Join(p.Stdin.Close(), p.Stdout.Close(), p.Stderr.Close()); err != nil {
		t.Error(err)
	}
}

// TestServerRefused: what cannot be given is refused before anything runs.
func TestServerRefused(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	if err := os.MkdirAll(data, 0o700); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(data, link); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"/": "not everything", data: "no skill server may see", link: "no skill server may see", dir + "/none": "no such file",
	} {
		_, err := servers(t).Start(sandbox.Server{
			Command: []string{"/bin/true"}, Dir: filepath.Join(data, "x"), Hidden: []string{data}, Files: []sandbox.ServerFile{{Path: path}},
		})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("files=%s: %v, want %q", path, err, want)
		}
	}
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte("no program"), 0o700); err != nil {
		t.Fatal(err)
	}
	for command, want := range map[string]string{"no-such-command": "not found", data: "directory", text: "execute "} {
		if _, err := servers(t).Start(sandbox.Server{Command: []string{command}, Dir: t.TempDir()}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", command, err, want)
		}
	}
}

// TestServerInvisiblePaths: a path that the command names and the server cannot see is reported,
// and one that it sees by symlinks is not.
func TestServerInvisiblePaths(t *testing.T) {
	dir := t.TempDir()
	seen, unseen := filepath.Join(dir, "seen"), filepath.Join(dir, "unseen")
	if err := errors.Join(os.Mkdir(seen, 0o755), os.Mkdir(unseen, 0o755)); err != nil {
		t.Fatal(err)
	}
	inside, outside := filepath.Join(seen, "inside"), filepath.Join(seen, "outside")
	if err := errors.Join(os.Symlink("/bin/true", inside), os.Symlink(unseen, outside)); err != nil {
		t.Fatal(err)
	}
	p, err := servers(t).Start(sandbox.Server{Command: []string{"/bin/true", seen, inside, outside, unseen, "/usr/bin", "/bin/sh", dir + "/none"}, Dir: t.TempDir(), Files: []sandbox.ServerFile{{Path: seen}}})
	if err != nil {
		t.Fatal(err)
	}
	_ = errors.Join(p.Wait(), p.Stdin.Close(), p.Stdout.Close(), p.Stderr.Close())
	if !slices.Equal(p.Invisible, []string{outside, unseen}) {
		t.Errorf("unseen are %v", p.Invisible)
	}
}

// TestServerBarred: the error names the declared file that the server may not use, who it belongs
// to, and what lets the server use it. A server of root has no capability, so modes hold for it.
func TestServerBarred(t *testing.T) {
	dir := t.TempDir()
	free, closed := filepath.Join(dir, "free"), filepath.Join(dir, "closed")
	inside, foreign := filepath.Join(free, "x"), filepath.Join(closed, "y")
	if err := errors.Join(os.Mkdir(free, 0o700), os.WriteFile(inside, nil, 0o200), os.Mkdir(closed, 0o755), os.WriteFile(foreign, nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	files := []sandbox.ServerFile{{Path: free}, {Path: closed}, {Path: closed, Write: true}}
	want := []string{"may not read " + inside}
	if os.Geteuid() == 0 {
		if err := os.Chown(foreign, 4711, 4711); err != nil {
			t.Fatal(err)
		}
		want = append(want, "may not write "+foreign+", which belongs to uid 4711")
	}
	p, err := servers(t).Start(sandbox.Server{Command: []string{"/bin/cat", inside}, Dir: t.TempDir(), Files: files})
	if err != nil {
		t.Fatal(err)
	}
	said, err := io.ReadAll(p.Stderr)
	_ = errors.Join(err, p.Wait(), p.Stdin.Close(), p.Stdout.Close(), p.Stderr.Close())
	if !strings.Contains(string(said), "Permission denied") {
		t.Errorf("the server could read it: %q", said)
	}
	if len(p.Barred) != len(want) {
		t.Fatalf("barred: %q", p.Barred)
	}
	for i, text := range want {
		if !strings.Contains(p.Barred[i], text) || !strings.Contains(p.Barred[i], "chown -R ") {
			t.Errorf("barred: %s", p.Barred[i])
		}
	}
}

// TestServerCommand: a server runs a script that its command names, by whatever path, and no
// interpreter, module or package beside it is guessed: its files name what it needs.
func TestServerCommand(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	script, tool := filepath.Join(dir, "run.sh"), filepath.Join(dir, "tool")
	if err := errors.Join(os.WriteFile(script, []byte("echo here; . "+dir+"/module"), 0o600), os.WriteFile("module", []byte("echo module"), 0o600),
		os.WriteFile("interpreter", []byte("#!/bin/sh\necho interpreted"), 0o700), os.WriteFile(tool, []byte("#!"+dir+"/interpreter\n"), 0o700)); err != nil {
		t.Fatal(err)
	}
	run := func(files []sandbox.ServerFile, command ...string) (string, error) {
		p, err := servers(t).Start(sandbox.Server{Command: command, Dir: t.TempDir(), Files: files})
		if err != nil {
			return "", err
		}
		defer func() { _ = errors.Join(p.Wait(), p.Stdin.Close(), p.Stdout.Close(), p.Stderr.Close()) }()
		out, err := io.ReadAll(p.Stdout)
		return string(out), err
	}
	all := []sandbox.ServerFile{{Path: dir}}
	for _, name := range []string{script, "run.sh", "./run.sh"} {
		if got, err := run(nil, "/bin/sh", name); err != nil || got != "here\n" {
			t.Errorf("%s alone: %q, %v", name, got, err)
		}
		if got, err := run(all, "/bin/sh", name); err != nil || got != "here\nmodule\n" {
			t.Errorf("%s with its files: %q, %v", name, got, err)
		}
	}
	if _, err := run(nil, tool); err == nil || !strings.Contains(err.Error(), tool) || !strings.Contains(err.Error(), "files=") {
		t.Errorf("a tool whose interpreter is not declared: %v", err)
	}
	link := filepath.Join(dir, "bin", "link")
	if err := errors.Join(os.Mkdir("bin", 0o700), os.Symlink("../tool", link)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{tool, link} {
		if got, err := run(all, name); err != nil || got != "interpreted\n" {
			t.Errorf("%s with its files: %q, %v", name, got, err)
		}
	}
}
