# layer: root
# open: landlock
# Landlock does not hide that a path exists.
for p in ("/etc/passwd", "/etc", SECRET):
    attempt("stat " + p, os.stat, p)
