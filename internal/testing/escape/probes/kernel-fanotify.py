# layer: seccomp
# expect: policy
attempt("fanotify_init", syscall, "fanotify_init", 0, 0)
