# layer: seccomp
# expect: policy
attempt("add_key", syscall, "add_key", b"user\0", b"x\0", b"y", 1, -3)
