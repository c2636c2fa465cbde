# layer: seccomp
# expect: policy
attempt("pidfd_getfd", syscall, "pidfd_getfd", 0, 0, 0)
