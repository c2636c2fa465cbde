//go:build linux && (amd64 || arm64)

package sandbox

import (
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// dockerVar tells a test process to put itself under what Docker gives a
// container by default, and then to run its tests.
const dockerVar = "WRIT_SANDBOX_TEST_DOCKER"

// dockerCapabilities are those of a container started without options.
var dockerCapabilities = []int{
	unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FSETID, unix.CAP_FOWNER, unix.CAP_MKNOD, unix.CAP_NET_RAW, unix.CAP_SETGID,
	unix.CAP_SETUID, unix.CAP_SETFCAP, unix.CAP_SETPCAP, unix.CAP_NET_BIND_SERVICE, unix.CAP_SYS_CHROOT, unix.CAP_KILL, unix.CAP_AUDIT_WRITE,
}

// dockerDenied are calls that Docker's seccomp profile refuses without
// CAP_SYS_ADMIN and that have to do with namespaces and mounts, or that a sandbox
// could be tempted to use. It refuses clone with flags for namespaces as well,
// and answers ENOSYS to clone3, whose flags it cannot see.
var dockerDenied = []uint32{
	unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_FSOPEN, unix.SYS_FSMOUNT,
	unix.SYS_FSCONFIG, unix.SYS_FSPICK, unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT, unix.SYS_MOUNT_SETATTR, unix.SYS_BPF,
	unix.SYS_PERF_EVENT_OPEN, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME, unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
	unix.SYS_USERFAULTFD, unix.SYS_IO_URING_SETUP, unix.SYS_QUOTACTL, unix.SYS_SWAPON, unix.SYS_REBOOT, unix.SYS_OPEN_BY_HANDLE_AT,
}

// dockerFilter is that profile as far as it matters here.
func dockerFilter() []unix.SockFilter {
	filter := []unix.SockFilter{load(dataNr)}
	for _, nr := range dockerDenied {
		filter = append(filter, jump(unix.BPF_JEQ, nr, 0, 1), give(actDeny))
	}
	filter = append(filter, jump(unix.BPF_JEQ, unix.SYS_CLONE3, 0, 1), give(actNoSys))
	return append(filter, jump(unix.BPF_JEQ, unix.SYS_CLONE, 0, 3),
		load(dataArgs), jump(unix.BPF_JSET, cloneNewNS, 0, 1), give(actDeny), give(actAllow))
}

// enterDocker restricts the calling thread and executes the program again, which
// makes that thread the whole process.
func enterDocker() error {
	runtime.LockOSThread()
	if os.Geteuid() == 0 {
		for c := range 41 {
			if !slices.Contains(dockerCapabilities, c) {
				if err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0); err != nil && err != unix.EINVAL {
					return err
				}
			}
		}
	} else if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	filter := dockerFilter()
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if _, _, e := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog))); e != 0 {
		return e
	}
	env := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, dockerVar+"=") })
	return syscall.Exec("/proc/self/exe", os.Args, env)
}

// TestDockerDefaults shows that the driver which needs no namespace holds under
// what Docker gives a container by default, and that Open finds that out.
func TestDockerDefaults(t *testing.T) {
	t.Parallel()
	run := func(name, want, probes string, change func(*exec.Cmd)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.v",
				"-test.run=^(TestEscapes|TestRunResult|TestOpensTheBest)$/^"+want+"$/"+probes)
			cmd.Env = append(os.Environ(), dockerVar+"=1")
			change(cmd)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			for _, line := range []string{"--- PASS: TestEscapes/" + want + "/", "--- PASS: TestRunResult/" + want + " ", "opened " + want + "\n"} {
				if !strings.Contains(string(out), line) {
					t.Errorf("no %q:\n%s", line, out)
				}
			}
		})
	}
	if os.Geteuid() == 0 {
		run("root", Landlock, "", func(*exec.Cmd) {})
	}
	// The same driver and user have all probes in TestUnprivileged.
	run("user", Landlock, "^(files|network)", func(cmd *exec.Cmd) { asNobody(t, cmd) })
}

// TestOpensTheBest prints the choice of Open, for TestDockerDefaults to read.
func TestOpensTheBest(t *testing.T) {
	t.Logf("opened %s", open(t, Config{}).Driver())
}
