# layer: parent
# expect: timeout
# wall: 700ms
while True:
    pass
