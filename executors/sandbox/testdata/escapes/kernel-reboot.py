# layer: seccomp
# expect: policy
attempt("reboot", syscall, 169, 0, 0, 0)
