# In front of every probe. What the host has to offer (SECRET, VICTIM, SOCKET,
# ABSTRACT: paths; TCP, UDP: ports; PARENT: a pid) and NR, the numbers of system
# calls, are defined before. A probe prints "blocked" or "ESCAPED" for each thing
# it tries. Only OSError counts as blocked, so a mistake in a probe fails it.
import errno, os
try:
    import ctypes
except MemoryError:
    # Some builds of Python write machine code to call any, which is kept out.
    class ctypes:
        Array = ()
        def __getattr__(self, name):
            raise OSError(errno.EPERM, "this Python calls no machine code")
    ctypes = ctypes()
    def _libc_syscall(*args):
        raise OSError(errno.EPERM, "this Python calls no machine code")
else:
    _libc = ctypes.CDLL(None, use_errno=True)
    _libc_syscall = _libc.syscall
def syscall(nr, *args):
    if isinstance(nr, str):
        if nr not in NR:
            raise OSError(errno.ENOSYS, nr + " is not a call of this architecture")
        nr = NR[nr]
    r = _libc_syscall(ctypes.c_long(nr), *[a if isinstance(a, (bytes, ctypes.Array)) else ctypes.c_long(a) for a in args])
    if r == -1:
        e = ctypes.get_errno()
        raise OSError(e, os.strerror(e))
    return r
def attempt(what, fn, *args):
    try:
        r = fn(*args)
    except OSError as e:
        print("blocked", what, e.errno, flush=True)
    else:
        print("ESCAPED", what, r, flush=True)
