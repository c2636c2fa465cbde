# layer: seccomp
for name, op in (("SET_PDEATHSIG", 1), ("SET_DUMPABLE", 4), ("SET_KEEPCAPS", 8), ("SET_SECCOMP", 22), ("CAPBSET_DROP", 24), ("SET_SECUREBITS", 28), ("SET_PTRACER", 0x59616D61), ("SET_MM", 35), ("CAP_AMBIENT", 47), ("SET_CHILD_SUBREAPER", 36), ("SET_SYSCALL_USER_DISPATCH", 59)):
    attempt(name, syscall, "prctl", op, 0, 0, 0, 0)
attempt("seccomp", syscall, "seccomp", 0, 0, 0)
