# layer: parent
# expect: timeout
# wall: 1s
# No signal handler runs in it, and no other thread.
import re
re.match(r"(a+)+$", "a" * 64 + "b")
