# layer: seccomp
# expect: policy
attempt("init_module", syscall, "init_module", b"x", 1, b"\0")
