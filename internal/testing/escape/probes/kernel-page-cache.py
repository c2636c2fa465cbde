# layer: seccomp
# What of a file that all boxes have lies in memory is a bit for each of its pages.
import mmap
NOWAIT, DONTNEED, PAGEOUT, COLD, POPULATE_READ = 8, 4, 21, 20, 22
fd = os.open(os.__file__, os.O_RDONLY)
attempt("fadvise", syscall, "fadvise64", fd, 0, 4096, DONTNEED)
page = mmap.mmap(fd, 4096, access=mmap.ACCESS_COPY)
address = ctypes.addressof(ctypes.c_char.from_buffer(page)) if ctypes.Array else 0
attempt("mincore", syscall, "mincore", address, 4096, ctypes.create_string_buffer(16) if ctypes.Array else b"")
def flagged(call, *args):
    try:
        return call(*args)
    except NotImplementedError:  # a Python built without these calls
        raise OSError(38, "cannot be asked for") from None
attempt("preadv2", flagged, os.preadv, fd, [bytearray(16)], 0, NOWAIT)
out = os.open(input_file, os.O_RDWR)
attempt("pwritev2", flagged, os.pwritev, out, [b"x"], 0, NOWAIT)
attempt("cachestat", syscall, "cachestat", fd, ctypes.create_string_buffer(16) if ctypes.Array else b"", ctypes.create_string_buffer(64) if ctypes.Array else b"", 0)
for name, advice in dict(pageout=PAGEOUT, cold=COLD, populate=POPULATE_READ).items():
    attempt(name, lambda: mmap.mmap(fd, 4096, access=mmap.ACCESS_READ).madvise(advice))
