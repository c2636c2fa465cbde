# layer: seccomp
import signal, subprocess, multiprocessing
def child(fn):
    pid = fn()
    if pid == 0:
        os._exit(0)
    return pid
attempt("fork", child, os.fork)
attempt("vfork", child, lambda: syscall("vfork"))
attempt("clone", child, lambda: syscall("clone", signal.SIGCHLD, 0, 0, 0, 0))
attempt("clone new user", child, lambda: syscall("clone", 0x10000000 | signal.SIGCHLD, 0, 0, 0, 0))
attempt("clone3", child, lambda: syscall("clone3", b"\0" * 64, 64))
attempt("posix_spawn", os.posix_spawn, "/bin/sh", ["sh"], {})
attempt("subprocess", subprocess.run, ["/bin/sh", "-c", "id"])
attempt("forkpty", lambda: child(lambda: os.forkpty()[0]))
