# layer: seccomp
# expect: policy
attempt("x32 getpid", syscall, 0x40000000 + 39)
