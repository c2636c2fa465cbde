# layer: seccomp
# expect: policy
attempt("setns", syscall, 308, 0, 0)
