# layer: root, landlock, user
# open: gvisor
# A process's own settings. Those that gVisor shows are its own, not the host's.
for p in ["/proc/self/oom_score_adj", "/proc/self/uid_map"]:
    attempt("write " + p, os.open, p, os.O_WRONLY)
