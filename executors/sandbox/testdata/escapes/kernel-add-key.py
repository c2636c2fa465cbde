# layer: seccomp
# expect: policy
attempt("add_key", syscall, 248, b"user\0", b"x\0", b"y", 1, -3)
