# layer: seccomp
# expect: policy
attempt("mount", syscall, "mount", b"none\0", b"/task\0", b"tmpfs\0", 0, 0)
