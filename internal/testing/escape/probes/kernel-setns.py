# layer: seccomp
# expect: policy
attempt("setns", syscall, "setns", 0, 0)
