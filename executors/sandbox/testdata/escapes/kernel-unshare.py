# layer: seccomp
# expect: policy
attempt("unshare", syscall, 272, 0x10000000)
