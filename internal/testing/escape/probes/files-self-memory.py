# layer: root, landlock
for p in ["self/mem", "self/maps", "self/environ", "self/auxv", "thread-self/mem", "self/task", "1/root", "self/root"]:
    attempt("open /proc/" + p, os.open, "/proc/" + p, os.O_RDONLY)
for p in ("mem", "environ", "fd/0", "fd/1", "maps", "root", "cwd", "exe"):
    attempt("parent's " + p, os.open, "/proc/%d/%s" % (PARENT, p), os.O_RDONLY)
attempt("write self/mem", os.open, "/proc/self/mem", os.O_RDWR)
