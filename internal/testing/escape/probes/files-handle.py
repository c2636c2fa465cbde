# layer: seccomp
# expect: policy
attempt("open_by_handle_at", syscall, "open_by_handle_at", 3, 0, 0)
