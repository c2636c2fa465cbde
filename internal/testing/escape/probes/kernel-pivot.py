# layer: seccomp
# expect: policy
attempt("pivot_root", syscall, "pivot_root", b".\0", b".\0")
