# layer: seccomp, namespaces
import socket
attempt("resolve", socket.getaddrinfo, "example.com", 80)
