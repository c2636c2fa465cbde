# layer: root, landlock, user
for p in ["/proc/self/oom_score_adj", "/proc/self/uid_map"]:
    attempt("write " + p, os.open, p, os.O_WRONLY)
