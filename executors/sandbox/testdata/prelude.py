# In front of every probe. SECRET, VICTIM, TCP, ABSTRACT and PARENT are defined
# by the test. A probe passes if it ends as it expects to, prints at least one
# "blocked" line if it ends normally, and never prints "ESCAPED". Only OSError
# counts as blocked, so a mistake in a probe fails it.
import ctypes, errno, os
_libc = ctypes.CDLL(None, use_errno=True)
def syscall(nr, *args):
    r = _libc.syscall(ctypes.c_long(nr), *[a if isinstance(a, (bytes, ctypes.Array)) else ctypes.c_long(a) for a in args])
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
