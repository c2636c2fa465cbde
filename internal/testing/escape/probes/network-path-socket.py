# layer: seccomp, root
import socket
# As of a container engine, which is a way to everything.
def connect():
    socket.socket(socket.AF_UNIX).connect(SOCKET)
attempt("socket in the file system", connect)
