# layer: seccomp
import resource
for name in ("RLIMIT_AS", "RLIMIT_CPU", "RLIMIT_NOFILE", "RLIMIT_NPROC", "RLIMIT_FSIZE", "RLIMIT_CORE"):
    which = getattr(resource, name)
    soft, hard = resource.getrlimit(which)
    # Python reports a refused call as ValueError, so the raw one is tried.
    attempt("lower " + name, syscall, "prlimit64", 0, which, b"\x01" + b"\0" * 15, 0)
    attempt("raise " + name, syscall, "prlimit64", 0, which, b"\xff" * 16, 0)
    if name != "RLIMIT_NPROC" and hard == resource.RLIM_INFINITY:
        print("ESCAPED no limit", name)
attempt("other process", syscall, "prlimit64", PARENT, resource.RLIMIT_NOFILE, b"\x01" + b"\0" * 15, 0)
