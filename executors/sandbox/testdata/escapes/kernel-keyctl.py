# layer: seccomp
# expect: policy
attempt("keyctl", syscall, 250, 0, -3, 0)
