# layer: rlimits
# expect: crash
import faulthandler
faulthandler._read_null()
print("ESCAPED")
