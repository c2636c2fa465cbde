//go:build amd64 || arm64

package sandbox

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
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

// writeBundle describes a sandbox in gVisor by the part of an OCI runtime
// configuration that it needs.
func writeBundle(dir string, rt runtimeDir, p Profile) error {
	type object = map[string]any
	scratch := filepath.Join("/", taskDir)
	spec := sandboxSpec{Root: rootPivot, Scratch: taskDir, Layers: allLayers}
	var rlimits, namespaces []object
	for kind, n := range map[string]uint64{
		"RLIMIT_AS": uint64(p.Limits.Memory), "RLIMIT_CPU": p.Limits.cpuSeconds(), "RLIMIT_FSIZE": uint64(p.Room), //nolint:gosec // G115: within range
		"RLIMIT_NOFILE": uint64(p.Limits.Files), "RLIMIT_NPROC": uint64(p.Limits.Threads), "RLIMIT_CORE": 0, //nolint:gosec // G115: within range
	} {
		rlimits = append(rlimits, object{"type": kind, "hard": n, "soft": n})
	}
	for _, kind := range []string{"pid", "network", "ipc", "uts", "mount"} {
		namespaces = append(namespaces, object{"type": kind})
	}
	// Of a masked comparison value is the mask, and valueTwo what must be left.
	noThread := object{"index": 0, "value": unix.CLONE_THREAD, "valueTwo": 0, "op": "SCMP_CMP_MASKED_EQ"}
	raw, err := json.Marshal(object{
		"ociVersion": "1.0.2", "hostname": "box", "root": object{"path": rt.path, "readonly": true},
		"process": object{
			"args": rt.image.command("/", p.Preload), "env": spec.environment(), "cwd": scratch, "rlimits": rlimits,
			"user": object{"uid": insideID, "gid": insideID}, "capabilities": object{}, "noNewPrivileges": true,
		},
		"mounts": []object{{"destination": scratch, "type": "tmpfs", "source": "scratch", "options": []string{
			"nosuid", "nodev", "noexec", "mode=0700", fmt.Sprintf("uid=%d", insideID), fmt.Sprintf("gid=%d", insideID), fmt.Sprintf("size=%dk", p.Room>>10),
		}}},
		"linux": object{"namespaces": namespaces, "seccomp": object{
			"defaultAction": "SCMP_ACT_ALLOW",
			"syscalls": []object{
				{"names": gvisorDenied, "action": "SCMP_ACT_ERRNO", "errnoRet": uint(unix.EPERM)},
				{"names": gvisorHostile, "action": "SCMP_ACT_TRAP"},
				// Without a tracer that is ENOSYS, on which libc takes clone; runsc knows no
				// other errno than EPERM, on which it gives up.
				{"names": []string{"clone3"}, "action": "SCMP_ACT_TRACE"},
				{"names": []string{"clone"}, "action": "SCMP_ACT_ERRNO", "errnoRet": uint(unix.EPERM), "args": []object{noThread}},
			},
		}},
	})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "config.json"), raw, 0o600)
}
