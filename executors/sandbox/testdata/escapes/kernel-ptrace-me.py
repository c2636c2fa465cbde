# layer: seccomp
# expect: policy
attempt("ptrace me", syscall, 101, 0, 0, 0, 0)
