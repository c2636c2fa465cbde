# layer: seccomp
for name in ("memfd_create", "memfd_secret"):
    attempt(name, syscall, name, b"x\0", 0)
