# layer: rlimits, scratch
# Room that is promised, not used.
fd = os.open(input_file, os.O_RDWR)
attempt("truncate", os.ftruncate, fd, 1 << 40)
attempt("allocate", os.posix_fallocate, fd, 0, 1 << 40)
attempt("write far", os.pwrite, fd, b"x", 1 << 40)
