# layer: seccomp
# On a page of a file that all boxes have, one would wake another.
import mmap
with open(os.__file__, "rb") as f:
    page = mmap.mmap(f.fileno(), 4096, access=mmap.ACCESS_COPY)
word = ctypes.addressof(ctypes.c_uint32.from_buffer(page)) if ctypes.Array else 0
WAKE, REQUEUE, CMP_REQUEUE, WAKE_OP, LOCK_PI, UNLOCK_PI, TRYLOCK_PI, WAKE_BITSET, LOCK_PI2 = 1, 3, 4, 5, 6, 7, 8, 10, 13
REALTIME = 256
for name, op in dict(wake=WAKE, requeue=REQUEUE, wake_op=WAKE_OP, wake_bitset=WAKE_BITSET, trylock=TRYLOCK_PI).items():
    attempt(name, syscall, "futex", word, op, 1, 0, word, -1)
    attempt(name + " by the other clock", syscall, "futex", word, op | REALTIME, 1, 0, word, -1)
attempt("robust list", syscall, "set_robust_list", word, 24)
