# layer: seccomp, namespaces
import fcntl
for pid in (PARENT, os.getppid() or PARENT, -1, 2, 0):
    attempt("kill %d" % pid, os.kill, pid, 0)
attempt("tkill", syscall, "tkill", PARENT, 0)
attempt("rt_sigqueueinfo", syscall, "rt_sigqueueinfo", PARENT, 10, b"\0" * 128)
attempt("pidfd_open", syscall, "pidfd_open", PARENT, 0)
attempt("F_SETOWN", fcntl.fcntl, 0, fcntl.F_SETOWN, PARENT)
attempt("F_SETSIG", fcntl.fcntl, 0, 10, 9)
attempt("F_SETPIPE_SZ", fcntl.fcntl, 1, 1031, 1 << 20)
attempt("F_NOTIFY", fcntl.fcntl, 0, fcntl.F_NOTIFY, 1)
