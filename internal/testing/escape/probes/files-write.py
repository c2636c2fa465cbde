# layer: root, landlock
for p in ["/escaped", "/usr/escaped", VICTIM, os.path.join(os.path.dirname(SECRET), "escaped"), "/dev/shm/escaped", "/var/tmp/escaped"]:
    attempt("write " + p, open, p, "w")
    attempt("truncate " + p, os.truncate, p, 0)
    attempt("unlink " + p, os.unlink, p)
    attempt("mkdir " + p, os.mkdir, p + ".d")
    attempt("O_TRUNC " + p, os.open, p, os.O_RDONLY | os.O_TRUNC)
