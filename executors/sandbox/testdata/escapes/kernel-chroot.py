# layer: seccomp
# expect: policy
attempt("chroot", syscall, 161, b".\0")
