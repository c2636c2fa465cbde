# layer: seccomp
size = b"\xff\0\0\0\0\0\0\0"
attempt("lsm_get_self_attr", syscall, "lsm_get_self_attr", 100, b"\0" * 256, size, 0)
attempt("lsm_set_self_attr", syscall, "lsm_set_self_attr", 100, b"\0" * 64, 32, 0)
attempt("lsm_list_modules", syscall, "lsm_list_modules", b"\0" * 256, size, 0)
