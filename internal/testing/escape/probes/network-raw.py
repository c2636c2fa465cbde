# layer: seccomp, capabilities
import _socket
attempt("icmp", _socket.socket, _socket.AF_INET, _socket.SOCK_RAW, 1)
attempt("ping", _socket.socket, _socket.AF_INET, _socket.SOCK_DGRAM, 1)
