# layer: seccomp, namespaces
import socket
def connect():
    socket.socket(socket.AF_UNIX).connect(ABSTRACT)
attempt("abstract socket", connect)
