# layer: seccomp
# The way to new rights over the kernel's rarest code.
import signal
def child(flags):
    pid = syscall("clone", flags | signal.SIGCHLD, 0, 0, 0, 0)
    if pid == 0:
        os._exit(0)
    return pid
for name, flag in (("user", 0x10000000), ("mount", 0x20000), ("pid", 0x20000000), ("net", 0x40000000), ("thread", 0x10000000 | 0x10000)):
    attempt("clone new " + name, child, flag)
