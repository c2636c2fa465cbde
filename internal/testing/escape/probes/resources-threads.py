# layer: rlimits, user
# open: landlock
import threading
threading.stack_size(65536)
gate = threading.Event()
n = 0
try:
    for n in range(400):
        threading.Thread(target=gate.wait, daemon=True).start()
except (RuntimeError, MemoryError):
    # Some must start, or it says nothing that no more do.
    assert n >= 4, n
    print("blocked threads", n)
else:
    print("ESCAPED threads", n)
gate.set()
