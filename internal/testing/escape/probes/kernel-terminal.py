# layer: seccomp, session
import fcntl
for name, cmd in (("TIOCSTI", 0x5412), ("TIOCLINUX", 0x541C), ("TIOCSCTTY", 0x540E), ("FS_IOC_SETFLAGS", 0x40086602)):
    for fd in (0, 1, 2):
        attempt("%s %d" % (name, fd), fcntl.ioctl, fd, cmd, b"\0" * 8)
