"""Tried in a real box at start: prints one line per right it should not have.

Defined in front by Go: SECRET is a file of the host that any user may read.
"""
import errno
import os

LEAK = "LEAK "


def refused(what, attempt, *args):
    try:
        attempt(*args)
    except (OSError, ImportError):
        return
    print(LEAK + what)


def sockets():
    import _socket
    _socket.socket(_socket.AF_INET, _socket.SOCK_DGRAM)


def unix_sockets():
    import _socket
    _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)


refused("socket", sockets)
refused("unix socket", unix_sockets)
refused("file of the host", open, SECRET)
refused("/proc", os.listdir, "/proc")
refused("list /", os.listdir, "/etc")
refused("write outside", open, "/escaped", "w")
refused("signal the parent", os.kill, os.getppid() or 2, 0)
refused("set uid", os.setuid, 0)
try:
    pid = os.fork()
except OSError:
    pass
else:
    if pid == 0:
        os._exit(0)
    print(LEAK + "fork")
for fd in range(5, 128):
    try:
        os.fstat(fd)
    except OSError as e:
        if e.errno == errno.EBADF:
            continue
    print(LEAK + "descriptor %d" % fd)
allowed = {"HOME", "TMPDIR", "PATH", "LANG", "TZ", "MALLOC_ARENA_MAX"}
for name in set(os.environ) - allowed:
    print(LEAK + "environment")

# What a script may do, it can.
import _thread
lock = _thread.allocate_lock()
lock.acquire()
_thread.start_new_thread(lock.release, ())
lock.acquire()
with open(input_file) as f:
    print("input " + f.read())
