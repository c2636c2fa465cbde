# layer: parent
# expect: memory
# A page here and there needs tables of its own, which no limit counts.
import mmap, time
if not ctypes.Array:
    hold = [bytearray(8 << 20) for _ in range(100)]
libc_mmap = _libc.mmap
libc_mmap.restype = ctypes.c_void_p
libc_mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
n = 0
for i in range(60_000):
    at = libc_mmap(0x100000000000 + (i << 30), 4096, 3, 0x22, -1, 0)
    if at in (None, 2 ** 64 - 1):
        break
    ctypes.memset(at, 1, 1)
    n += 1
time.sleep(2)
print("ESCAPED", n, "mappings", flush=True)
