# layer: seccomp
# expect: policy
attempt("kcmp", syscall, "kcmp", PARENT, PARENT, 0, 0, 0)
