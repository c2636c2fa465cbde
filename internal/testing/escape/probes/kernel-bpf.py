# layer: seccomp
# expect: policy
attempt("bpf", syscall, "bpf", 0, b"\0" * 64, 64)
