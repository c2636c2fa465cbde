# layer: capabilities
# open: landlock
# Who has no rights cannot give these up, nor, without new privileges, use them.
# What no execve can give back.
def held(c):
    if syscall("prctl", 23, c, 0, 0, 0) == 0:
        raise OSError(errno.EPERM, "not held")
for c in range(41):
    attempt("capability %d" % c, held, c)
