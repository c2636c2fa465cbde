# layer: seccomp
for fd in range(0, 5):
    for name in ("listen", "accept4", "getsockname", "setsockopt", "shutdown"):
        attempt("%s %d" % (name, fd), syscall, name, fd, 0, 0, 0, 0)
