# layer: seccomp, namespaces
import socket
attempt("tcp", socket.create_connection, ("127.0.0.1", TCP), 1)
attempt("outside", socket.create_connection, ("192.0.2.1", 80), 1)
