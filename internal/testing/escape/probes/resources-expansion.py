# layer: rlimits
# expect: memory
# A few kilobytes that grow a thousand times, as an archive may hold.
import zlib
bomb = zlib.compress(bytes(4 << 20), 1)
data = [zlib.decompress(bomb) for _ in range(300)]
print("ESCAPED", len(data))
