# layer: seccomp, namespaces
import _socket
for family in range(0, 46):
    for kind in (_socket.SOCK_STREAM, _socket.SOCK_DGRAM, _socket.SOCK_RAW, _socket.SOCK_SEQPACKET):
        attempt("socket %d %d" % (family, kind), _socket.socket, family, kind)
