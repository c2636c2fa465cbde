# layer: seccomp
# expect: policy
attempt("x32 ptrace", syscall, 0x40000000 + 521, 0, 0, 0, 0)
