# layer: seccomp
# expect: policy
attempt("reboot", syscall, "reboot", 0, 0, 0)
