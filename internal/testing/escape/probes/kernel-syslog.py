# layer: seccomp
# expect: policy
attempt("syslog", syscall, "syslog", 3, b"\0" * 64, 64)
