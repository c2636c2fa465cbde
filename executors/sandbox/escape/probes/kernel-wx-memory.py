# layer: seccomp
# open: gvisor
import mmap
rwx = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
attempt("anonymous rwx", mmap.mmap, -1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, rwx)
attempt("anonymous rx", mmap.mmap, -1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ | mmap.PROT_EXEC)
m = mmap.mmap(-1, 4096)
addr = ctypes.addressof(ctypes.c_char.from_buffer(m))
attempt("mprotect exec", syscall, "mprotect", addr, 4096, 5)
attempt("pkey_mprotect", syscall, "pkey_mprotect", addr, 4096, 5, -1)
attempt("memfd", os.memfd_create, "x")
attempt("personality", syscall, "personality", 0x0400000)
