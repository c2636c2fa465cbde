# layer: seccomp, namespaces
import socket
def send():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.connect(("127.0.0.1", UDP))
    s.send(b"TOPSECRET")
    return s.recv(16)  # the host answers
attempt("udp", send)
