# layer: seccomp
# expect: policy
attempt("bpf", syscall, 321, 0, b"\0" * 64, 64)
