# layer: seccomp
attempt("map_shadow_stack", syscall, "map_shadow_stack", 0, 4096, 0)
attempt("mseal", syscall, "mseal", 0, 4096, 0)
attempt("cachestat", syscall, "cachestat", 1, b"\0" * 16, b"\0" * 64, 0)
attempt("remap_file_pages", syscall, "remap_file_pages", 0, 4096, 0, 0, 0)
