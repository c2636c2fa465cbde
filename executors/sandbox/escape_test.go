//go:build linux && (amd64 || arm64)

package sandbox

import (
	"embed"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Embedded, because the test also runs as a user who cannot read the sources.
//
//go:embed testdata
var testdata embed.FS

// minProbes guards against a folder that silently became empty.
const minProbes = 50

// probe is one file of testdata/escapes: a script and what must end it.
type probe struct {
	name, script string
	expect       Outcome
	limits       Limits
}

func probes(t *testing.T) []probe {
	t.Helper()
	entries, err := testdata.ReadDir("testdata/escapes")
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) < minProbes {
		t.Fatalf("%d probes, want at least %d", len(entries), minProbes)
	}
	var list []probe
	for _, e := range entries {
		raw, err := testdata.ReadFile("testdata/escapes/" + e.Name())
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, parseProbe(t, strings.TrimSuffix(e.Name(), ".py"), string(raw)))
	}
	return list
}

// parseProbe reads the "# key: value" lines at the top of a probe.
func parseProbe(t *testing.T, name, script string) probe {
	t.Helper()
	p := probe{name: name, script: script, expect: OK, limits: Limits{Wall: waitLimit}}
	layer := false
	for line := range strings.Lines(script) {
		key, value, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "# "), ": ")
		if !ok || !strings.HasPrefix(line, "# ") {
			break
		}
		var err error
		switch key {
		case "layer":
			layer = true
		case "expect":
			p.expect = Outcome(value)
		case "wall":
			p.limits.Wall, err = time.ParseDuration(value)
		case "cpu":
			p.limits.CPU, err = time.ParseDuration(value)
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	if !layer {
		t.Fatalf("%s does not say which layer must block it", name)
	}
	return p
}

// bait is what the host has to offer: each probe is told where it is.
type bait struct {
	secret, victim string
	port           int
	abstract       string
}

// layBait puts secrets where a box must not find them: files, an environment
// variable, a descriptor that is not closed on exec, and open sockets.
func layBait(t *testing.T) bait {
	t.Helper()
	dir := t.TempDir()
	b := bait{secret: filepath.Join(dir, "secret"), victim: filepath.Join(dir, "victim")}
	for _, f := range []string{b.secret, b.victim} {
		if err := os.WriteFile(f, []byte("TOPSECRET"), 0o666); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(f, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("WRIT_TEST_TOPSECRET", "TOPSECRET")
	fd, err := unix.Open(b.secret, unix.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	// Above the descriptors that a start hands over.
	leaked, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD, 9)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd); unix.Close(leaked) })
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b.port = tcp.Addr().(*net.TCPAddr).Port
	b.abstract = fmt.Sprintf("writ-test-%d", os.Getpid())
	local, err := net.Listen("unix", "@"+b.abstract)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tcp.Close(); local.Close() })
	return b
}

func (b bait) definitions() string {
	return fmt.Sprintf("SECRET, VICTIM, TCP, ABSTRACT, PARENT = %s, %s, %d, %s, %d\n",
		strconv.QuoteToASCII(b.secret), strconv.QuoteToASCII(b.victim), b.port, strconv.QuoteToASCII("\x00"+b.abstract), os.Getpid())
}

func TestEscapes(t *testing.T) {
	list := probes(t)
	prelude, err := testdata.ReadFile("testdata/prelude.py")
	if err != nil {
		t.Fatal(err)
	}
	b := layBait(t)
	for _, name := range available(t) {
		s := open(t, Config{Drivers: []string{name}})
		for _, p := range list {
			t.Run(name+"/"+p.name, func(t *testing.T) {
				before := stat(t, b.victim)
				res := run(t, s, Job{
					Script: b.definitions() + string(prelude) + p.script,
					Input:  strings.NewReader("data"), Limits: p.limits,
				})
				out := string(res.Output)
				if res.Outcome != p.expect {
					t.Errorf("outcome %s, want %s: %s", res.Outcome, p.expect, res.Error)
				}
				if strings.Contains(out, "ESCAPED") || strings.Contains(out, "TOPSECRET") {
					t.Errorf("escaped:\n%s", escapes(out))
				}
				if p.expect == OK && !strings.Contains(out, "blocked") {
					t.Errorf("nothing was tried: %q", out)
				}
				if after := stat(t, b.victim); before != after {
					t.Errorf("victim changed from %+v to %+v", before, after)
				}
			})
		}
	}
}

// escapes are the lines of a probe's output that matter.
func escapes(out string) string {
	lines := slices.DeleteFunc(strings.Split(out, "\n"), func(l string) bool { return strings.HasPrefix(l, "blocked") })
	return strings.Join(lines, "\n")
}

type fileState struct {
	mode, uid, gid uint32
	size           int64
	mtime          unix.Timespec
}

func stat(t *testing.T, path string) fileState {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		t.Fatal(err)
	}
	return fileState{st.Mode, st.Uid, st.Gid, st.Size, st.Mtim}
}

// TestFilterRefusesTheRest tries every system call number without a rule: none
// may answer anything but EPERM.
func TestFilterRefusesTheRest(t *testing.T) {
	const last = 480
	named := map[uint32]bool{}
	for _, r := range seccompRules(1) {
		if named[r.nr] {
			t.Errorf("call %d has two rules", r.nr)
		}
		named[r.nr] = true
	}
	// Only the kernel's own trampolines make these two; anywhere else they raise
	// SIGILL, and recent kernels let them pass every filter for that.
	const uretprobe, uprobe = 335, 336
	named[uretprobe], named[uprobe] = true, true
	var rest []string
	for nr := range uint32(last) {
		if !named[nr] {
			rest = append(rest, fmt.Sprint(nr))
		}
	}
	if len(rest) < 150 {
		t.Fatalf("only %d calls are refused", len(rest))
	}
	script := `
import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
for nr in [` + strings.Join(rest, ",") + `]:
    r = libc.syscall(ctypes.c_long(nr), 0, 0, 0, 0, 0, 0)
    if r != -1 or ctypes.get_errno() != errno.EPERM:
        print(nr, r, ctypes.get_errno())
`
	for _, name := range available(t) {
		t.Run(name, func(t *testing.T) {
			res := run(t, open(t, Config{Drivers: []string{name}, Workers: -1}), Job{Script: script})
			if res.Outcome != OK || len(res.Output) > 0 {
				t.Errorf("%s %s\n%s", res.Outcome, res.Error, res.Output)
			}
		})
	}
}

// TestFilterKillsHostile tries each call of the hostile list.
func TestFilterKillsHostile(t *testing.T) {
	s := open(t, Config{Workers: -1})
	for _, nr := range hostile {
		res := run(t, s, Job{Script: fmt.Sprintf("import ctypes; ctypes.CDLL(None).syscall(%d, 0, 0, 0, 0, 0, 0)", nr)})
		if res.Outcome != Policy {
			t.Errorf("call %d: %s %s", nr, res.Outcome, res.Error)
		}
	}
}
