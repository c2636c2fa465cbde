# layer: seccomp
# expect: policy
attempt("kexec_load", syscall, "kexec_load", 0, 0, 0, 0)
