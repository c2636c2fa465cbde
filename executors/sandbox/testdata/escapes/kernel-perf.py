# layer: seccomp
# expect: policy
attempt("perf_event_open", syscall, 298, b"\0" * 112, 0, -1, -1, 0)
