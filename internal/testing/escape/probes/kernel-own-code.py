# layer: scratch
# open: landlock
# Machine code of its own, mapped from a file. It gets no further than Python
# does; on a disk that must hold files that can be executed, it can be mapped.
import mmap
fd = os.open(input_file, os.O_RDWR)
os.write(fd, b"\xc3" * 4096)
attempt("map own file executable", mmap.mmap, fd, 4096, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)
