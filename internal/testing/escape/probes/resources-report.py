# layer: parent
# expect: timeout
# wall: 300ms
# The report channel is bounded too; what is written there is only a label.
while True:
    os.write(4, b"x" * 65536)
