//go:build amd64 || arm64

package sandbox

import (
	"slices"

	"golang.org/x/sys/unix"
)

// seccompRules is the whole policy: calls allowed outright, by argument,
// answered without effect, and those that end the process. Not named and so
// refused: every socket, fork, ptrace and its kin, mounts, namespaces, SysV and
// POSIX IPC, epoll, inotify, memfd, set*id, scheduling and priority setters.
//
// Sandboxes share the files of the runtime and the kernel, so a call by which one leaves a mark
// that another can read is a channel between tenants. Hence no locks, no futexes on shared pages
// except to wait, nothing that reveals the content of the page cache (fadvise64, mincore,
// cachestat, RWF_NOWAIT), and nothing that counts the memory, threads or disk of the machine
// (sysinfo, statfs).
func seccompRules(pid int) []rule {
	var rules []rule
	for _, l := range []struct {
		numbers []uint32
		action  uint32
	}{
		{allowed, actAllow},
		{archAllowed, actAllow},
		{pretended, actDone},
		{archPretended, actDone},
		{absent, actNoSys},
		{unsupported, actNotSup},
		{hostile, actKill},
	} {
		for _, nr := range l.numbers {
			rules = append(rules, rule{nr: nr, action: l.action})
		}
	}
	return slices.Concat(rules, byArgument(uint32(pid)), archByArgument) //nolint:gosec // G115: within range
}

// allowed act on the process itself, on descriptors it has, or on files, where
// the mount tree and Landlock decide.
var allowed = []uint32{
	unix.SYS_READ, unix.SYS_WRITE, unix.SYS_READV, unix.SYS_WRITEV, unix.SYS_PREAD64, unix.SYS_PWRITE64,
	unix.SYS_PREADV, unix.SYS_PWRITEV, unix.SYS_LSEEK, unix.SYS_CLOSE, unix.SYS_CLOSE_RANGE,
	unix.SYS_FSTAT, unix.SYS_NEWFSTATAT, unix.SYS_STATX, unix.SYS_OPENAT, unix.SYS_FACCESSAT, unix.SYS_FACCESSAT2, unix.SYS_READLINKAT,
	unix.SYS_GETDENTS64, unix.SYS_GETCWD, unix.SYS_CHDIR, unix.SYS_FCHDIR, unix.SYS_UMASK,
	unix.SYS_UNLINKAT, unix.SYS_MKDIRAT, unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2,
	unix.SYS_FTRUNCATE, unix.SYS_TRUNCATE, unix.SYS_FALLOCATE, unix.SYS_FSYNC, unix.SYS_FDATASYNC,
	unix.SYS_SENDFILE, unix.SYS_COPY_FILE_RANGE,
	unix.SYS_DUP, unix.SYS_DUP3, unix.SYS_PIPE2, unix.SYS_PPOLL, unix.SYS_PSELECT6,
	unix.SYS_BRK, unix.SYS_MUNMAP, unix.SYS_MREMAP, unix.SYS_MSYNC,
	unix.SYS_SET_TID_ADDRESS, unix.SYS_RSEQ,
	unix.SYS_SCHED_YIELD, unix.SYS_SCHED_GET_PRIORITY_MAX, unix.SYS_SCHED_GET_PRIORITY_MIN, unix.SYS_GETCPU,
	unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN, unix.SYS_RT_SIGPENDING,
	unix.SYS_RT_SIGTIMEDWAIT, unix.SYS_RT_SIGSUSPEND, unix.SYS_SIGALTSTACK, unix.SYS_RESTART_SYSCALL,
	unix.SYS_GETITIMER, unix.SYS_SETITIMER, unix.SYS_NANOSLEEP, unix.SYS_GETTIMEOFDAY, unix.SYS_TIMES,
	unix.SYS_GETPID, unix.SYS_GETPPID, unix.SYS_GETTID,
	unix.SYS_GETUID, unix.SYS_GETEUID, unix.SYS_GETGID, unix.SYS_GETEGID, unix.SYS_GETRESUID, unix.SYS_GETRESGID,
	unix.SYS_GETGROUPS, unix.SYS_GETRUSAGE, unix.SYS_GETRLIMIT, unix.SYS_UNAME, unix.SYS_GETRANDOM,
	unix.SYS_WAIT4, unix.SYS_WAITID, unix.SYS_EXIT, unix.SYS_EXIT_GROUP,
	// Needed once, for Python itself; the loader is the one file Landlock lets
	// be executed.
	unix.SYS_EXECVE,
}

// pretended succeed without effect: libraries call them after copying or
// unpacking a file and would give up on an error, and Landlock does not cover
// them, so under the landlock driver they would reach files of the same user.
var pretended = []uint32{
	unix.SYS_FCHMOD, unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2, unix.SYS_FCHOWN, unix.SYS_FCHOWNAT, unix.SYS_UTIMENSAT,
	// A lock is not needed: the sandbox is one process, and can only read the files that it shares
	// with others.
	unix.SYS_FLOCK,
}

// absent have an older equivalent whose arguments a filter can see. On ENOSYS libc uses
// that.
var absent = []uint32{
	unix.SYS_CLONE3, unix.SYS_OPENAT2, unix.SYS_MEMFD_CREATE, unix.SYS_EPOLL_PWAIT2,
	// At the end of a thread the kernel wakes the waiters of each futex in this
	// list, on shared pages too.
	unix.SYS_SET_ROBUST_LIST,
}

// unsupported are features of a file system that callers do without where it does not
// have them.
var unsupported = []uint32{
	unix.SYS_GETXATTR, unix.SYS_LGETXATTR, unix.SYS_FGETXATTR,
	unix.SYS_LISTXATTR, unix.SYS_LLISTXATTR, unix.SYS_FLISTXATTR,
}

// hostile have no use in any analysis, not even by accident of a library, so a
// script that makes one is ended and the run labelled Policy.
var hostile = []uint32{
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_KCMP, unix.SYS_PIDFD_GETFD,
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_FSOPEN, unix.SYS_FSMOUNT,
	unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT, unix.SYS_MOUNT_SETATTR, unix.SYS_UNSHARE, unix.SYS_SETNS,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER,
	unix.SYS_IO_URING_REGISTER, unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
	unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE,
	unix.SYS_KEXEC_LOAD, unix.SYS_REBOOT, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_QUOTACTL,
	unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME,
	unix.SYS_FANOTIFY_INIT, unix.SYS_SYSLOG,
}

const (
	all32      = ^uint32(0)
	cloneNewNS = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
		unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET
)

// ioctl commands of any descriptor, from asm-generic/ioctls.h.
const (
	fionread = 0x541b
	fionbio  = 0x5421
	fionclex = 0x5450
	fioclex  = 0x5451
)

// Operations of futex, from linux/futex.h.
const (
	futexWait       = 0
	futexWaitBitset = 9
	futexPrivate    = 128
	futexRealtime   = 256
)

// fewClocks are the clocks 0 to 15.
var fewClocks = [][]check{{bits(0, all32&^15, 0)}}

func byArgument(pid uint32) []rule {
	return []rule{
		// Threads, not processes, and in the namespaces there are.
		{nr: unix.SYS_CLONE, action: actAllow, any: [][]check{{bits(0, unix.CLONE_THREAD|cloneNewNS, unix.CLONE_THREAD)}}},
		// Executable memory comes from files only and is never writable. No huge
		// pages, which the machine has few of.
		{nr: unix.SYS_MMAP, action: actAllow, any: [][]check{
			{bits(2, unix.PROT_EXEC, 0), bits(3, unix.MAP_HUGETLB, 0)},
			{bits(2, unix.PROT_EXEC|unix.PROT_WRITE, unix.PROT_EXEC), bits(3, unix.MAP_ANONYMOUS|unix.MAP_HUGETLB, 0)},
		}},
		{nr: unix.SYS_MPROTECT, action: actAllow, any: [][]check{{bits(2, unix.PROT_EXEC, 0)}}},
		{nr: unix.SYS_MADVISE, action: actAllow, any: equals(2, unix.MADV_NORMAL, unix.MADV_RANDOM, unix.MADV_SEQUENTIAL, unix.MADV_WILLNEED,
			unix.MADV_DONTNEED, unix.MADV_FREE, unix.MADV_NOHUGEPAGE)},
		// So not TIOCSTI and TIOCLINUX, which type into a terminal.
		{nr: unix.SYS_IOCTL, action: actAllow, any: equals(1, unix.TCGETS, fioclex, fionclex, fionread, fionbio,
			unix.TIOCGWINSZ)},
		// So not F_SETOWN and F_SETSIG, by which the kernel would signal for
		// us, nor F_SETPIPE_SZ, leases and notifications. Databases lock their
		// files: that succeeds without effect. No call reveals a lock.
		{
			nr: unix.SYS_FCNTL, action: actAllow,
			any:  equals(1, unix.F_DUPFD, unix.F_DUPFD_CLOEXEC, unix.F_GETFD, unix.F_SETFD, unix.F_GETFL, unix.F_SETFL),
			done: equals(1, unix.F_SETLK, unix.F_SETLKW, unix.F_OFD_SETLK, unix.F_OFD_SETLKW),
		},
		// On memory of its own everything; elsewhere to wait, with either clock,
		// since that is how a thread is joined.
		{nr: unix.SYS_FUTEX, action: actAllow, any: [][]check{
			{bits(1, futexPrivate, futexPrivate)},
			{bits(1, all32&^futexRealtime, futexWait)},
			{bits(1, all32&^futexRealtime, futexWaitBitset)},
		}},
		// Without RWF_NOWAIT, which reveals the content of the page cache.
		{nr: unix.SYS_PREADV2, action: actAllow, any: equals(5, 0)},
		// Clocks of the system: a negative number is that of a process, and the
		// answer would reveal whether it exists.
		{nr: unix.SYS_CLOCK_GETTIME, action: actAllow, any: fewClocks},
		{nr: unix.SYS_CLOCK_GETRES, action: actAllow, any: fewClocks},
		{nr: unix.SYS_CLOCK_NANOSLEEP, action: actAllow, any: fewClocks},
		// So not the parent death signal.
		{nr: unix.SYS_PRCTL, action: actAllow, any: equals(0, unix.PR_SET_NAME, unix.PR_GET_NAME, unix.PR_GET_DUMPABLE,
			unix.PR_GET_NO_NEW_PRIVS, unix.PR_GET_SECCOMP, unix.PR_CAPBSET_READ)},
		// Reading its own, not setting: a null new_limit.
		{nr: unix.SYS_PRLIMIT64, action: actAllow, any: [][]check{{bits(0, all32, 0), bits(2, all32, 0), {arg: 2, high: true, mask: all32, want: 0}}}},
		// Only about itself: an answer about another would reveal that it exists.
		{nr: unix.SYS_SCHED_GETAFFINITY, action: actAllow, any: equals(0, 0)},
		{nr: unix.SYS_SCHED_GETPARAM, action: actAllow, any: equals(0, 0)},
		{nr: unix.SYS_SCHED_GETSCHEDULER, action: actAllow, any: equals(0, 0)},
		{nr: unix.SYS_GETPRIORITY, action: actAllow, any: equals(1, 0)},
		{nr: unix.SYS_GETPGID, action: actAllow, any: equals(0, 0)},
		{nr: unix.SYS_GETSID, action: actAllow, any: equals(0, 0)},
		// Signals to itself.
		{nr: unix.SYS_KILL, action: actAllow, any: equals(0, pid)},
		{nr: unix.SYS_TGKILL, action: actAllow, any: equals(0, pid)},
	}
}

func bits(arg, mask, want uint32) check { return check{arg: arg, mask: mask, want: want} }

// equals holds if the low half of arg is any of the values.
func equals(arg uint32, values ...uint32) [][]check {
	var any [][]check
	for _, v := range values {
		any = append(any, []check{bits(arg, all32, v)})
	}
	return any
}
