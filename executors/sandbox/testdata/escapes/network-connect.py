# layer: seccomp, network namespace
import socket
attempt("tcp", socket.create_connection, ("127.0.0.1", TCP), 1)
attempt("outside", socket.create_connection, ("192.0.2.1", 80), 1)
attempt("dns", socket.getaddrinfo, "example.com", 80)
def abstract():
    s = socket.socket(socket.AF_UNIX)
    s.connect(ABSTRACT)
attempt("abstract socket", abstract)
attempt("listen", socket.create_server, ("127.0.0.1", 0))
