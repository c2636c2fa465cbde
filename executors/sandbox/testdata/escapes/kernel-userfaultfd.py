# layer: seccomp
# expect: policy
attempt("userfaultfd", syscall, 323, 1)
