# layer: seccomp
# expect: policy
attempt("pivot_root", syscall, 155, b".\0", b".\0")
