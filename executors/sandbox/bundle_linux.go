//go:build amd64 || arm64

package sandbox

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// The part of an OCI runtime configuration that a sandbox needs.
type (
	ociConfig struct {
		Version  string     `json:"ociVersion"`
		Root     ociRoot    `json:"root"`
		Hostname string     `json:"hostname"`
		Process  ociProcess `json:"process"`
		Mounts   []ociMount `json:"mounts"`
		Linux    ociLinux   `json:"linux"`
	}
	ociRoot struct {
		Path     string `json:"path"`
		ReadOnly bool   `json:"readonly"`
	}
	ociProcess struct {
		Args            []string    `json:"args"`
		Env             []string    `json:"env"`
		Cwd             string      `json:"cwd"`
		User            ociUser     `json:"user"`
		Capabilities    struct{}    `json:"capabilities"` // none
		Rlimits         []ociRlimit `json:"rlimits"`
		NoNewPrivileges bool        `json:"noNewPrivileges"`
	}
	ociUser struct {
		UID int `json:"uid"`
		GID int `json:"gid"`
	}
	ociRlimit struct {
		Type string `json:"type"`
		Hard uint64 `json:"hard"`
		Soft uint64 `json:"soft"`
	}
	ociMount struct {
		Destination string   `json:"destination"`
		Type        string   `json:"type"`
		Source      string   `json:"source"`
		Options     []string `json:"options"`
	}
	ociLinux struct {
		Namespaces []ociNamespace `json:"namespaces"`
		Seccomp    ociSeccomp     `json:"seccomp"`
	}
	ociNamespace struct {
		Type string `json:"type"`
	}
	ociSeccomp struct {
		Default  string       `json:"defaultAction"`
		Syscalls []ociSyscall `json:"syscalls"`
	}
	ociSyscall struct {
		Names  []string `json:"names"`
		Action string   `json:"action"`
		Errno  uint     `json:"errnoRet,omitempty"`
		Args   []ociArg `json:"args,omitempty"`
	}
	ociArg struct {
		Index    uint   `json:"index"`
		Value    uint64 `json:"value"`    // SCMP_CMP_MASKED_EQ: the mask
		ValueTwo uint64 `json:"valueTwo"` // and what must be left
		Op       string `json:"op"`
	}
)

// gvisorDenied keep a sandbox in gVisor to one process, which makes per-process
// limits total, and off sockets, which it would emulate. This is a list of what
// is refused, not of what is allowed: the calls never reach the host's kernel.
var gvisorDenied = []string{
	"fork", "vfork", "socket", "socketpair", "bind", "connect", "listen", "accept", "accept4", "sendto", "recvfrom", "sendmsg", "recvmsg",
	"sendmmsg", "recvmmsg", "getpeername", "getsockname", "setsockopt", "getsockopt", "shutdown",
	"io_setup", "mbind", "sched_setattr", "ioprio_set", "memfd_create", "eventfd2", "epoll_create", "epoll_create1", "timerfd_create", "inotify_init", "inotify_init1",
	"signalfd", "signalfd4", "pidfd_open", "shmget", "shmat", "semget", "msgget", "mq_open", "splice", "tee", "vmsplice",
	"kill", "tkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "setuid", "setgid", "setresuid", "setresgid", "setreuid", "setregid",
	"setgroups", "setfsuid", "setfsgid", "capset", "setpriority", "sched_setaffinity", "sched_setscheduler", "mlock", "mlock2", "mlockall",
	"timer_create", "setrlimit", "seccomp", "personality", "mknod", "mknodat", "symlink", "symlinkat", "link", "linkat",
	"setxattr", "lsetxattr", "fsetxattr", "removexattr", "membarrier",
}

// gvisorHostile end the run, as they do elsewhere.
var gvisorHostile = []string{
	"ptrace", "process_vm_readv", "process_vm_writev", "unshare", "setns", "mount", "umount2", "pivot_root", "chroot",
	"io_uring_setup", "keyctl", "add_key", "request_key", "syslog", "bpf", "perf_event_open", "userfaultfd",
}

// writeBundle describes a sandbox in gVisor.
func writeBundle(dir string, rt runtimeDir, p Profile) error {
	scratch := filepath.Join("/", taskDir)
	spec := sandboxSpec{Root: rootPivot, Scratch: taskDir, Layers: allLayers}
	c := ociConfig{
		Version: "1.0.2", Root: ociRoot{rt.path, true}, Hostname: "box",
		Process: ociProcess{
			Args: rt.image.command("/", p.Preload), Env: spec.environment(), Cwd: scratch,
			User: ociUser{insideID, insideID}, NoNewPrivileges: true,
		},
		Mounts: []ociMount{{scratch, "tmpfs", "scratch", []string{
			"nosuid", "nodev", "noexec", "mode=0700", fmt.Sprintf("uid=%d", insideID), fmt.Sprintf("gid=%d", insideID), fmt.Sprintf("size=%dk", p.Room>>10),
		}}},
		Linux: ociLinux{Seccomp: ociSeccomp{
			Default: "SCMP_ACT_ALLOW",
			Syscalls: []ociSyscall{
				{Names: gvisorDenied, Action: "SCMP_ACT_ERRNO", Errno: uint(unix.EPERM)},
				{Names: gvisorHostile, Action: "SCMP_ACT_TRAP"},
				// Without a tracer that is ENOSYS, on which libc takes clone; runsc knows no
				// other errno than EPERM, on which it gives up.
				{Names: []string{"clone3"}, Action: "SCMP_ACT_TRACE"},
				{Names: []string{"clone"}, Action: "SCMP_ACT_ERRNO", Errno: uint(unix.EPERM), Args: []ociArg{
					{Index: 0, Value: unix.CLONE_THREAD, ValueTwo: 0, Op: "SCMP_CMP_MASKED_EQ"},
				}},
			},
		}},
	}
	for kind, n := range map[string]uint64{
		"RLIMIT_AS": uint64(p.Limits.Memory), "RLIMIT_CPU": p.Limits.cpuSeconds(), "RLIMIT_FSIZE": uint64(p.Room), //nolint:gosec // G115: within range
		"RLIMIT_NOFILE": uint64(p.Limits.Files), "RLIMIT_NPROC": uint64(p.Limits.Threads), "RLIMIT_CORE": 0, //nolint:gosec // G115: within range
	} {
		c.Process.Rlimits = append(c.Process.Rlimits, ociRlimit{kind, n, n})
	}
	for _, kind := range []string{"pid", "network", "ipc", "uts", "mount"} {
		c.Linux.Namespaces = append(c.Linux.Namespaces, ociNamespace{kind})
	}
	raw, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "config.json"), raw, 0o600)
}
