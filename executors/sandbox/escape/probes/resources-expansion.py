# layer: rlimits
# expect: memory
import zlib
bomb = zlib.compress(bytes(64 << 20))
data = [zlib.decompress(bomb) for _ in range(64)]
print("ESCAPED", len(data))
