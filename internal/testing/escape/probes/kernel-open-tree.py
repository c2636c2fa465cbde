# layer: seccomp
# expect: policy
attempt("open_tree", syscall, "open_tree", -100, b"/\0", 1)
