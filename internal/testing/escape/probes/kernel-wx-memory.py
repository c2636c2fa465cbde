# layer: seccomp
import mmap
rwx = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
attempt("anonymous rwx", mmap.mmap, -1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, rwx)
attempt("anonymous rx", mmap.mmap, -1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ | mmap.PROT_EXEC)
memory = mmap.mmap(-1, 4096)
def protect(call, *more):
    return syscall(call, ctypes.addressof(ctypes.c_char.from_buffer(memory)), 4096, 5, *more)
attempt("mprotect exec", protect, "mprotect")
attempt("pkey_mprotect", protect, "pkey_mprotect", -1)
attempt("memfd", syscall, "memfd_create", b"x\0", 0)
attempt("personality", syscall, "personality", 0x0400000)
