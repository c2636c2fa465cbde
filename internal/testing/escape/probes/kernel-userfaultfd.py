# layer: seccomp
# expect: policy
attempt("userfaultfd", syscall, "userfaultfd", 1)
