//go:build linux && (amd64 || arm64)

package sandbox_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// serverVar makes this program a hostile server: it holds the bait, as JSON.
const serverVar = "WRIT_TEST_SERVER"

func init() {
	raw := os.Getenv(serverVar)
	if raw == "" {
		return
	}
	var b serverBait
	if err := json.Unmarshal([]byte(raw), &b); err != nil {
		fmt.Println(err)
		os.Exit(2)
	}
	got := map[string]string{}
	for name, probe := range serverProbes {
		got[name] = try(probe, &b)
	}
	if host, err := os.Hostname(); err == nil && host == "skill" && host != b.Host {
		for name, deed := range serverDeeds {
			got[name] = try(deed, &b)
		}
		for name, control := range serverControls {
			got[name] = try(control, &b)
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(got); err != nil {
		os.Exit(2)
	}
	os.Exit(0)
}

// held is what a probe reports that got nothing; a control that fails says it too.
const held = "held"

func try(probe func(*serverBait) error, b *serverBait) string {
	if err := probe(b); err != nil {
		return held + ": " + err.Error()
	}
	return "got it"
}

// serverBait is where there is something to be had.
type serverBait struct {
	Data     string // data directory with keys/root.pem
	Parent   int    // who started it, with a secret in its environment
	Secret   string // that secret
	Home     string // of the user
	Victim   int    // another process of the same user
	Tmp      string // a file in the temporary directory that all may write to
	Socket   string // path of a unix socket
	Abstract string
	TCP      string
	Host     string // host name
	Declared string // a directory that is declared to be read
	Writable string // one that is declared to be written to
	HasScope bool   // the kernel keeps abstract sockets apart
}

var errNothing = errors.New("nothing there")

func read(path, want string) error {
	raw, err := os.ReadFile(path)
	if err == nil && !strings.Contains(string(raw), want) {
		return errNothing
	}
	return err
}

func list(dir string) error {
	entries, err := os.ReadDir(dir)
	if err == nil && len(entries) == 0 {
		return errNothing
	}
	return err
}

func errnoOf(_, _ uintptr, e syscall.Errno) error {
	if e != 0 {
		return e
	}
	return nil
}

func proc(pid int, name string) string { return "/proc/" + strconv.Itoa(pid) + "/" + name }

// same is nil if the process at pid is the one that the bait means: in a pid
// namespace the number may be one of the server's own.
func same(_ *serverBait, pid int) error {
	exe, err := os.Readlink(proc(pid, "exe"))
	if err != nil {
		return err
	}
	if pid == os.Getpid() || !strings.Contains(exe, ".test") && !strings.Contains(exe, "sleep") {
		return errNothing
	}
	return nil
}

// serverProbes look, and change nothing but what the test made: they do no harm
// where nothing holds them.
var serverProbes = map[string]func(*serverBait) error{
	"read the root key":       func(b *serverBait) error { return read(filepath.Join(b.Data, "keys/root.pem"), "PRIVATE") },
	"list the data directory": func(b *serverBait) error { return list(b.Data) },
	"write to the data directory": func(b *serverBait) error {
		return os.WriteFile(filepath.Join(b.Data, "planted"), nil, 0o600)
	},
	"data directory through /proc/self/root": func(b *serverBait) error { return list("/proc/self/root" + b.Data) },
	"data directory through a link in home":  func(b *serverBait) error { return throughLink(b.Data) },
	"configuration below a declared path":    func(b *serverBait) error { return read(filepath.Join(b.Declared, "writ.yaml"), b.Secret) },
	"data directory below a declared path":   func(b *serverBait) error { return list(filepath.Join(b.Declared, "data")) },
	"data directory of the parent's root":    func(b *serverBait) error { return list(proc(b.Parent, "root"+b.Data)) },
	"working directory of the parent":        func(b *serverBait) error { return list(proc(b.Parent, "cwd/")) },
	"environment of the parent":              func(b *serverBait) error { return read(proc(b.Parent, "environ"), b.Secret) },
	"environment of any process":             anyEnviron,
	"its own environment":                    ownEnviron,
	"command line of the parent":             func(b *serverBait) error { return read(proc(b.Parent, "cmdline"), ".test") },
	"memory of the parent":                   func(b *serverBait) error { return open(proc(b.Parent, "mem"), os.O_RDONLY) },
	"descriptors of the parent":              func(b *serverBait) error { return list(proc(b.Parent, "fd")) },
	"see the victim":                         func(b *serverBait) error { return same(b, b.Victim) },
	"signal the victim":                      func(b *serverBait) error { return errors.Join(same(b, b.Victim), syscall.Kill(b.Victim, 0)) },
	"signal the parent":                      func(b *serverBait) error { return errors.Join(same(b, b.Parent), syscall.Kill(b.Parent, 0)) },
	"trace the victim":                       trace,
	"read the victim's memory":               readMemory,
	"hold the victim":                        func(b *serverBait) error { return holdProcess(b, b.Victim) },
	"limits of the victim": func(b *serverBait) error {
		return errors.Join(same(b, b.Victim), unix.Prlimit(b.Victim, unix.RLIMIT_CORE, nil, &unix.Rlimit{}))
	},
	"home of the user":                    func(b *serverBait) error { return list(b.Home) },
	"homes":                               func(*serverBait) error { return errors.Join(list("/home"), list("/root")) },
	"home of root":                        func(*serverBait) error { return list("/root") },
	"passwords":                           func(*serverBait) error { return open("/etc/shadow", os.O_RDONLY) },
	"users of the machine":                func(*serverBait) error { return read("/etc/passwd", "daemon") },
	"a file in the temporary directory":   func(b *serverBait) error { return read(b.Tmp, b.Secret) },
	"unix socket by path":                 func(b *serverBait) error { return dial("unix", b.Socket) },
	"abstract unix socket":                func(b *serverBait) error { return dial("unix", "@"+b.Abstract) },
	"runtime directory":                   func(*serverBait) error { return list("/run") },
	"records of the system":               func(*serverBait) error { return list("/var/log") },
	"devices of the kernel":               func(*serverBait) error { return list("/sys/class") },
	"messages of the kernel":              func(*serverBait) error { return open("/dev/kmsg", os.O_RDONLY|syscall.O_NONBLOCK) },
	"write to a path declared to be read": func(b *serverBait) error { return os.WriteFile(filepath.Join(b.Declared, "planted"), nil, 0o600) },
	"capabilities":                        capabilities,
	"keys of the kernel": func(*serverBait) error {
		_, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_USER_KEYRING, false)
		return err
	},
	"bpf":                           func(*serverBait) error { return refusedCall(unix.SYS_BPF) },
	"perf events":                   func(*serverBait) error { return refusedCall(unix.SYS_PERF_EVENT_OPEN) },
	"io_uring":                      func(*serverBait) error { return refusedCall(unix.SYS_IO_URING_SETUP) },
	"userfaultfd":                   func(*serverBait) error { return refusedCall(unix.SYS_USERFAULTFD) },
	"descriptors that it inherited": inherited,
	"host name":                     func(b *serverBait) error { return hostName(b) },
	"shared memory of others":       func(*serverBait) error { return read("/proc/sysvipc/shm", "4242") },
}

// serverDeeds would change the machine where nothing held them. They are done
// inside only.
var serverDeeds = map[string]func(*serverBait) error{
	"mount":                      func(*serverBait) error { return unix.Mount("tmpfs", "/tmp", "tmpfs", 0, "") },
	"unmount":                    func(*serverBait) error { return unix.Unmount("/proc", unix.MNT_DETACH) },
	"new user namespace":         func(*serverBait) error { return unix.Unshare(unix.CLONE_NEWUSER) },
	"new mount namespace":        func(*serverBait) error { return unix.Unshare(unix.CLONE_NEWNS) },
	"fork into a user namespace": forkUser,
	"change root":                func(*serverBait) error { return unix.Chroot("/") },
	"write to the system":        func(*serverBait) error { return os.WriteFile("/usr/planted", nil, 0o600) },
	"write to the root":          func(*serverBait) error { return os.WriteFile("/planted", nil, 0o600) },
	"core pattern":               func(*serverBait) error { return open("/proc/sys/kernel/core_pattern", os.O_WRONLY) },
	"sysrq":                      func(*serverBait) error { return open("/proc/sysrq-trigger", os.O_WRONLY) },
	"become root":                func(*serverBait) error { return becomeRoot() },
}

var serverControls = map[string]func(*serverBait) error{
	"control: home can be written":     func(*serverBait) error { return os.WriteFile(filepath.Join(os.Getenv("HOME"), "mine"), nil, 0o600) },
	"control: tmp can be written":      func(*serverBait) error { return os.WriteFile("/tmp/mine", nil, 0o600) },
	"control: declared can be read":    func(b *serverBait) error { return read(filepath.Join(b.Declared, "text"), "declared") },
	"control: declared can be written": func(b *serverBait) error { return os.WriteFile(filepath.Join(b.Writable, "out"), nil, 0o600) },
	"control: programs run":            func(*serverBait) error { return exec.Command("/bin/sh", "-c", "exit 0").Run() },
	"control: configured environment":  func(*serverBait) error { return env("CONFIGURED", "yes") },
	"control: random numbers":          func(*serverBait) error { return open("/dev/urandom", os.O_RDONLY) },
	"control: discard":                 func(*serverBait) error { return open("/dev/null", os.O_WRONLY) },
	"control: who it is":               func(*serverBait) error { return read("/etc/passwd", "skill") },
	"network":                          func(b *serverBait) error { return dial("tcp", b.TCP) },
}

func env(name, want string) error {
	if os.Getenv(name) != want {
		return errNothing
	}
	return nil
}

func open(path string, flag int) error {
	f, err := os.OpenFile(path, flag, 0)
	if err == nil {
		err = f.Close()
	}
	return err
}

func dial(network, addr string) error {
	c, err := net.DialTimeout(network, addr, 5*time.Second)
	if err == nil {
		err = c.Close()
	}
	return err
}

func throughLink(dir string) error {
	link := filepath.Join(os.TempDir(), "link-"+strconv.Itoa(os.Getpid()))
	if err := os.Symlink(dir, link); err != nil {
		return err
	}
	defer os.Remove(link)
	return list(link + "/")
}

func anyEnviron(b *serverBait) error {
	all, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return err
	}
	for _, path := range all {
		if raw, err := os.ReadFile(path); err == nil && strings.Contains(string(raw), "WRIT_TEST_SECRET="+b.Secret) {
			return nil
		}
	}
	return errNothing
}

func ownEnviron(b *serverBait) error { return env("WRIT_TEST_SECRET", b.Secret) }

func trace(b *serverBait) error {
	if err := same(b, b.Victim); err != nil {
		return err
	}
	return errnoOf(syscall.Syscall6(syscall.SYS_PTRACE, 0x4206, uintptr(b.Victim), 0, 0, 0, 0)) // PTRACE_SEIZE
}

func readMemory(b *serverBait) error {
	if err := same(b, b.Victim); err != nil {
		return err
	}
	var buf [1]byte
	local := []unix.Iovec{{Base: &buf[0], Len: 1}}
	_, err := unix.ProcessVMReadv(b.Victim, local, []unix.RemoteIovec{{Base: 8, Len: 1}}, 0)
	if errors.Is(err, unix.EFAULT) {
		return nil // it may, there is just nothing
	}
	return err
}

func holdProcess(b *serverBait, pid int) error {
	if err := same(b, pid); err != nil {
		return err
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err == nil {
		err = unix.Close(fd)
	}
	return err
}

func forkUser(*serverBait) error {
	cmd := exec.Command("/bin/true")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER}
	return cmd.Run()
}

func becomeRoot() error {
	if os.Geteuid() == 0 && !mapped() {
		return nil // it is
	}
	if os.Geteuid() == 0 {
		return errNothing // of its own namespace alone
	}
	return errnoOf(syscall.RawSyscall(syscall.SYS_SETUID, 0, 0, 0))
}

// mapped: uid 0 is not the machine's.
func mapped() bool {
	raw, err := os.ReadFile("/proc/self/uid_map")
	return err == nil && strings.TrimSpace(strings.Join(strings.Fields(string(raw)), " ")) != "0 0 4294967295"
}

func capabilities(*serverBait) error {
	raw, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(raw)) {
		for _, set := range []string{"CapInh:", "CapPrm:", "CapEff:", "CapAmb:"} {
			if v, ok := strings.CutPrefix(line, set); ok && strings.Trim(strings.TrimSpace(v), "0") != "" {
				return nil
			}
		}
	}
	return errNothing
}

// refusedCall makes a call with arguments that are nonsense: EPERM says that it
// was refused before anybody looked at them.
func refusedCall(nr uintptr) error {
	_, _, e := syscall.Syscall6(nr, ^uintptr(0), uintptr(unsafe.Pointer(nil)), 0, 0, 0, 0)
	if e == syscall.EPERM || e == syscall.ENOSYS {
		return e
	}
	return nil
}

func inherited(*serverBait) error {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err
	}
	for _, e := range entries {
		to, err := os.Readlink("/proc/self/fd/" + e.Name())
		n, _ := strconv.Atoi(e.Name())
		if err == nil && n > 2 && !strings.Contains(to, "anon_inode") && !strings.HasPrefix(to, "/proc/") && !strings.HasPrefix(to, "/sys/") {
			return nil
		}
	}
	return errNothing
}

func hostName(b *serverBait) error {
	name, err := os.Hostname()
	if err == nil && name != b.Host {
		return errNothing
	}
	return err
}
