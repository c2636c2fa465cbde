# layer: seccomp
# expect: policy
attempt("ptrace", syscall, "ptrace", 16, PARENT, 0, 0)
