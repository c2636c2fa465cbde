# layer: seccomp
# The clock of a process answers only if there is one.
import time
def clock(pid):
    return (~pid << 3) | 2
own = os.getpid()
answer = ctypes.create_string_buffer(16) if ctypes.Array else b""
for what, pid in {"parent": PARENT, "first": 1, "own": own}.items():
    attempt("clock_gettime " + what, syscall, "clock_gettime", clock(pid), answer)
    attempt("clock_getres " + what, syscall, "clock_getres", clock(pid), answer)
attempt("clock of a descriptor", syscall, "clock_gettime", (~0 << 3) | 3, answer)
