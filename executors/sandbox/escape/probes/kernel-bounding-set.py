# layer: capabilities
# What no execve can give back.
for c in range(41):
    if syscall("prctl", 23, c, 0, 0, 0) != 0:
        print("ESCAPED capability", c)
print("blocked capabilities")
