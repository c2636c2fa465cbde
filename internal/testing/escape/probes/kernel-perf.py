# layer: seccomp
# expect: policy
attempt("perf_event_open", syscall, "perf_event_open", b"\0" * 112, 0, -1, -1, 0)
