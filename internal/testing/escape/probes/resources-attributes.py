# layer: seccomp
value = b"x" * 4096
for i in range(64):
    attempt("setxattr", syscall, "setxattr", b"input\0", b"user.writ%d\0" % i, value, len(value), 0)
fd = os.open(input_file, os.O_RDWR)
attempt("fsetxattr", syscall, "fsetxattr", fd, b"user.writ\0", value, len(value), 0)
