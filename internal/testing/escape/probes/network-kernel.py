# layer: seccomp
# Sockets that talk to the kernel, or to a virtual machine's host.
import _socket
for name, family, kind, protocol in (("netlink", 16, 3, 0), ("packet", 17, 3, 0), ("vsock", 40, 1, 0), ("alg", 38, 5, 0), ("bluetooth", 31, 3, 0), ("xdp", 44, 3, 0)):
    attempt(name, _socket.socket, family, kind, protocol)
