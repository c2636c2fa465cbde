# layer: seccomp
# expect: policy
attempt("fsopen", syscall, "fsopen", b"tmpfs\0", 0)
