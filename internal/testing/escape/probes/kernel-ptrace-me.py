# layer: seccomp
# expect: policy
attempt("ptrace me", syscall, "ptrace", 0, 0, 0, 0)
