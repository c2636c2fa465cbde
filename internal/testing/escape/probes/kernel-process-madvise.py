# layer: seccomp
for name in ("process_madvise", "process_mrelease", "migrate_pages", "move_pages", "mbind"):
    attempt(name, syscall, name, 0, 0, 0, 0, 0, 0)
