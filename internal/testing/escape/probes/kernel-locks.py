# layer: seccomp
# A lock on a file that all boxes have is a bit that all can read.
import fcntl, struct
one, other = os.open(os.__file__, os.O_RDONLY), os.open(os.__file__, os.O_RDONLY)
def took_effect(lock, then):
    try:
        lock(one)
    except OSError as e:
        raise OSError(e.errno, "refused")
    try:
        then(other)
    except BlockingIOError:
        return "the other sees it"
    except OSError:
        pass  # it is not told
    raise OSError(errno.ENOLCK, "no effect")
def flock(fd):
    fcntl.flock(fd, (fcntl.LOCK_SH if fd == one else fcntl.LOCK_EX) | fcntl.LOCK_NB)
SETLK, GETLK, OFD_GETLK, OFD_SETLK = 6, 5, 36, 37
def region(kind):
    return struct.pack("hhqqi4x", kind, 0, 7, 1, 0)
def record(command):
    # A reader's lock is all that a descriptor for reading takes.
    return lambda fd: fcntl.fcntl(fd, command, region(fcntl.F_RDLCK))
def asked(command):
    def ask(fd):
        answer = struct.unpack("hhqqi4x", fcntl.fcntl(fd, command, region(fcntl.F_WRLCK)))
        if answer[0] != fcntl.F_UNLCK and answer[4] != 0:
            raise OSError(errno.EAGAIN, "locked")
    return ask
attempt("flock", took_effect, flock, flock)
for set_command in (SETLK, OFD_SETLK):
    for get_command in (GETLK, OFD_GETLK):
        attempt("lock %d %d" % (set_command, get_command), took_effect, record(set_command), asked(get_command))
attempt("what is locked", fcntl.fcntl, one, GETLK, region(fcntl.F_WRLCK))
attempt("what is locked by a description", fcntl.fcntl, one, OFD_GETLK, region(fcntl.F_WRLCK))
