# layer: scratch, rlimits, landlock
def bomb():
    block = b"x" * (1 << 20)
    for i in range(20):
        with open("input" if i == 0 else "f%d" % i, "wb", buffering=0) as f:
            for _ in range(10):
                if f.write(block) != len(block):
                    raise OSError(errno.ENOSPC, "short")
attempt("200 MiB", bomb)
attempt("sparse", lambda: os.truncate("input", 1 << 40))
attempt("fallocate", lambda: os.posix_fallocate(os.open("input", os.O_RDWR), 0, 1 << 30))
