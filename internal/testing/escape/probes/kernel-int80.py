# layer: seccomp, scratch
# expect: policy
# A call through the 32-bit gate, whose numbers mean others: getpid there is
# writev here. It needs machine code of its own first.
import mmap, platform
if platform.machine() != "x86_64":
    print("blocked: no such gate", flush=True)
    os._exit(0)
fd = os.open(input_file, os.O_RDWR)
os.write(fd, b"\xb8\x14\x00\x00\x00\xcd\x80\xc3" + b"\x90" * 4088)
def call():
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    at = libc.mmap(None, 4096, mmap.PROT_READ | mmap.PROT_EXEC, mmap.MAP_PRIVATE, fd, 0)
    if at == 2**64 - 1:
        raise OSError(ctypes.get_errno(), "mmap")
    got = ctypes.CFUNCTYPE(ctypes.c_long)(at)()
    if -4096 < got < 0:
        raise OSError(-got, "int 0x80")
    return got
attempt("int 0x80", call)
