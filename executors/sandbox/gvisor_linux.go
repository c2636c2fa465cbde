//go:build amd64 || arm64

package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"aob.dev/writ/executors/sandbox/spawn"
)

// gvisorDriver runs sandboxes in gVisor: a kernel in user space stands between the
// script and that of the host. It starts an installed runsc, which takes a tenth
// of a second and 60 MB for each sandbox, so it is worth its workers.
type gvisorDriver struct{ host *host }

var _ Driver = gvisorDriver{}

func (gvisorDriver) Name() string { return GVisor }

func (d gvisorDriver) Probe(ctx context.Context) error { return probe(ctx, d, d.host) }

// runscState is the directory below a bundle in which runsc keeps what it runs.
const runscState = "state"

// deleteTimeout bounds the removal of one container.
const deleteTimeout = 10 * time.Second

func (d gvisorDriver) Start(p Profile) (*Instance, error) {
	runsc, err := exec.LookPath("runsc")
	if err != nil {
		return nil, fmt.Errorf("install gVisor's runsc in PATH: %w", err)
	}
	bundle, err := d.host.scratch.make(-1)
	if err != nil {
		return nil, fmt.Errorf("bundle: %w", err)
	}
	remove := func() error { return d.host.scratch.remove(bundle) }
	inst, err := d.launch(runsc, bundle, p)
	if err != nil {
		return nil, errors.Join(err, remove())
	}
	inst.limits, inst.driver, inst.python = p.Limits, GVisor, d.host.runtime.image.Python
	return inst, nil
}

// launch starts runsc and returns the sandbox without waiting for it.
func (d gvisorDriver) launch(runsc, bundle string, p Profile) (*Instance, error) {
	dir := filepath.Join(d.host.runtime.path, bundle)
	state := filepath.Join(dir, runscState)
	if err := os.Mkdir(state, 0o700); err != nil {
		return nil, err
	}
	if err := writeBundle(dir, d.host.runtime, p); err != nil {
		return nil, err
	}
	b, theirs, err := newInstance()
	if err != nil {
		return nil, err
	}
	id := strings.ReplaceAll(bundle, "/", "-")
	args := append(runscFlags(state), "--network=none", "--host-uds=none", "--ignore-cgroups", "--overlay2=none", "--oci-seccomp")
	cmd := exec.Command(runsc, append(args, "run", "--bundle="+dir, //nolint:gosec,noctx // G204: found in PATH; it ends with its sandbox, not with a context
		fmt.Sprintf("--pass-fd=3:%d", spawn.FeedFD), fmt.Sprintf("--pass-fd=4:%d", spawn.ReportFD), id)...)
	cmd.Env = []string{"PATH=/usr/bin:/bin", "TMPDIR=" + dir}
	cmd.Stdout, cmd.Stderr = theirs.out, theirs.errs
	cmd.ExtraFiles = []*os.File{theirs.feed, theirs.report}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if os.Geteuid() == 0 {
		// What runsc mounts in its state, and leaves there, goes with it.
		cmd.SysProcAttr.Unshareflags = syscall.CLONE_NEWNS
	}
	err = d.host.spawner.command(cmd)
	theirs.close()
	if err != nil {
		b.closePipes()
		return nil, fmt.Errorf("start runsc: %w", err)
	}
	b.proc, b.shell = cmd.Process, true
	// What it starts later inherits both. Where it has ended, wait reports why.
	_ = unix.Setpriority(unix.PRIO_PROCESS, b.proc.Pid, sandboxNice)
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", b.proc.Pid), []byte("1000"), 0)
	b.explain = func(f spawn.Failure) error { return f.Errno }
	b.cleanup = func() error {
		return errors.Join(deleteContainer(runsc, state, id), d.host.scratch.remove(bundle))
	}
	go b.wait()
	return b, nil
}

// runscFlags begin every command of runsc.
func runscFlags(state string) []string {
	flags := []string{"--root=" + state}
	if os.Geteuid() != 0 {
		flags = append(flags, "--rootless")
	}
	return flags
}

// deleteContainer ends and removes what runsc leaves running when it is killed. A
// container that ended by itself is gone already.
func deleteContainer(runsc, state, id string) error {
	left, err := filepath.Glob(filepath.Join(state, id+"*.state"))
	if err != nil || len(left) == 0 {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), deleteTimeout) // what has to be done at the end of a run, however it ended
	defer cancel()
	cmd := exec.CommandContext(ctx, runsc, append(runscFlags(state), "delete", "-force", id)...) //nolint:gosec // G204: found in PATH
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("delete container: %w: %s", err, out)
	}
	return nil
}

// sweepContainers ends the containers of a session whose process crashed.
func sweepContainers(session string) {
	runsc, err := exec.LookPath("runsc")
	if err != nil {
		return
	}
	files, err := filepath.Glob(filepath.Join(session, "*", runscState, "*.state"))
	if err != nil {
		return
	}
	for _, f := range files {
		id, _, _ := strings.Cut(filepath.Base(f), "_")
		_ = deleteContainer(runsc, filepath.Dir(f), id) // the next Open tries again
	}
}

// gvisorDenied keep a sandbox in gVisor to one process, so that per-process limits
// bound all of it, and from sockets, which gVisor would emulate. This is a list of what
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
