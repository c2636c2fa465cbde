# layer: rlimits
import mmap
attempt("1 GiB", mmap.mmap, -1, 1 << 30)
