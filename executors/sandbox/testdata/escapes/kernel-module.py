# layer: seccomp
# expect: policy
attempt("init_module", syscall, 175, b"x", 1, b"\0")
