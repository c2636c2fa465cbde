# layer: capabilities
# open: landlock
# Who has no rights cannot give these up, nor, without new privileges, use them.
# What no execve can give back.
for c in range(41):
    if syscall("prctl", 23, c, 0, 0, 0) != 0:
        print("ESCAPED capability", c)
print("blocked capabilities")
