# layer: seccomp
for name, code, arg in (("tsc", 26, 2), ("timer slack", 29, 1), ("no thp", 41, 1), ("speculation", 53, 0), ("io flusher", 57, 1),
                        ("write and execute", 65, 1), ("memory merge", 67, 1), ("vma name", 0x53564d41, 0)):
    attempt(name, syscall, "prctl", code, arg, 0, 0, 0)
