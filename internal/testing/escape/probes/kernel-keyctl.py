# layer: seccomp
# expect: policy
attempt("keyctl", syscall, "keyctl", 0, -3, 0)
