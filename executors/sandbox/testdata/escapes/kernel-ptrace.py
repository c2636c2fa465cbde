# layer: seccomp
# expect: policy
attempt("ptrace", syscall, 101, 16, PARENT, 0, 0)
