# layer: seccomp
# expect: policy
attempt("chroot", syscall, "chroot", b".\0")
