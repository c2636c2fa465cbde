# layer: seccomp
# expect: policy
attempt("unshare", syscall, "unshare", 0x10000000)
