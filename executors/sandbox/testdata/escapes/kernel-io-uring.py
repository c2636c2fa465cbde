# layer: seccomp
# expect: policy
attempt("io_uring_setup", syscall, 425, 8, b"\0" * 120)
