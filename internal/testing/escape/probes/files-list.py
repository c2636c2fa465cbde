# layer: root, landlock
for p in ["/etc", "/home", "/var", "/proc", "/sys", "/dev", os.path.dirname(SECRET), "/proc/1", "/proc/self"]:
    attempt("list " + p, os.listdir, p)
