# layer: seccomp
# On descriptors it has, and one the parent leaked, in case any is a socket.
for fd in range(0, 64):
    attempt("getpeername %d" % fd, syscall, "getpeername", fd, b"\0" * 16, b"\x10\0\0\0")
    attempt("sendmsg %d" % fd, syscall, "sendmsg", fd, b"\0" * 64, 0)
