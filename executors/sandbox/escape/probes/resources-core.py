# layer: rlimits
# expect: crash
ctypes.string_at(0)
print("ESCAPED")
