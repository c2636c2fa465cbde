# layer: root, landlock
for n in (1, 3, 8, 20):
    attempt("up %d" % n, open, "../" * n + "etc/passwd")
fd = os.open(".", os.O_RDONLY)
attempt("openat", lambda: os.open("../../../../../../.." + SECRET, os.O_RDONLY, dir_fd=fd))
attempt("O_PATH then read", lambda: os.read(os.open(SECRET, os.O_PATH), 1))
