# layer: seccomp, namespaces
# Where there is no namespace of processes, these would tell which there are.
one = ctypes.create_string_buffer(128) if ctypes.Array else b""
for name in ("sched_getscheduler", "getpgid", "getsid"):
    attempt(name, syscall, name, PARENT)
attempt("sched_getparam", syscall, "sched_getparam", PARENT, one)
attempt("sched_getaffinity", syscall, "sched_getaffinity", PARENT, 128, one)
attempt("getpriority", syscall, "getpriority", 0, PARENT)
attempt("get_robust_list", syscall, "get_robust_list", PARENT, one, one)
attempt("prlimit64", syscall, "prlimit64", PARENT, 7, 0, one)
