# layer: seccomp
attempt("mlock", syscall, "mlock", 0, 1 << 20)
attempt("mlockall", syscall, "mlockall", 1)
attempt("mlock2", syscall, "mlock2", 0, 1 << 20, 0)
