# layer: seccomp
# Its own end is enough to pass descriptors and to fill kernel memory.
import _socket
attempt("socketpair", _socket.socketpair)
attempt("by number", syscall, "socketpair", 1, 1, 0, b"\0" * 8)
