# layer: parent
# expect: timeout
# wall: 300ms
while True:
    pass
