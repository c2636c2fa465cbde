# layer: parent
# expect: timeout
# wall: 1s
import atexit, time
atexit.register(time.sleep, 600)
