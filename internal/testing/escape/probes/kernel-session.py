# layer: session
# In a group of others, its terminal and its signals would be theirs too.
if os.getpgrp() != os.getpid() or os.getsid(0) != os.getpid():
    print("ESCAPED group", os.getpgrp(), "session", os.getsid(0))
print("blocked")
