# layer: seccomp
# expect: policy
attempt("io_uring_setup", syscall, "io_uring_setup", 8, b"\0" * 120)
